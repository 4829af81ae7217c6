-- op_roofline: each op call whose work is known, with the time it took and what the device could have done.
-- Only the innermost modelled ops count (aten::addmm inside aten::linear), so nothing counts twice. Time is that of the
-- device work launched from inside the op; on a rank without device work it is the op's own duration.
-- Needs: op_work, events, device_events, rank_extent, device_peaks
-- Columns
--   rank INTEGER - Process rank
--   event_id BIGINT - The op call
--   name VARCHAR - Op name
--   family VARCHAR - matmul, convolution, attention, normalization, pointwise, reduction, embedding or optimizer
--   shapes VARCHAR - JSON list of input shapes
--   dtype VARCHAR - dtype it computes in; tf32 where its kernels say so
--   device VARCHAR - Device that did it
--   step INTEGER - Step
--   site_id BIGINT - Responsible source line
--   module_id BIGINT - nn.Module
--   time_ns BIGINT ns Device time, or host time on a rank without device work
--   flops BIGINT flop Operations
--   size_bytes BIGINT bytes Bytes that must move at least
--   formula VARCHAR - How the operations were counted
--   peak_flops DOUBLE flop/s Peak of the device for this dtype (vector peak for what is no matrix product)
--   memory_bandwidth DOUBLE bytes/s Peak of the device's memory
--   attainable_ns DOUBLE ns Least time the device needs: the longer of computing and moving
WITH RECURSIVE modelled AS MATERIALIZED (
    SELECT e.rank, e.event_id, e.parent_id, e.name, e.shapes, e.step, e.site_id, e.module_id, e.duration_ns,
           w.family, w.dtype, w.flops, w.size_bytes, w.formula
    FROM events AS e
    JOIN op_work AS w ON w.name = e.name AND w.shapes = e.shapes AND w.dtypes IS NOT DISTINCT FROM e.dtypes
        AND w.concrete IS NOT DISTINCT FROM json_extract(e.attributes, '$."Concrete Inputs"')::VARCHAR
    WHERE e.category = 'op'
), climbing AS (
    -- From each modelled op up to the nearest modelled op around it: that one is not innermost.
    SELECT rank, parent_id AS at_id FROM modelled WHERE parent_id IS NOT NULL
    UNION
    SELECT c.rank, e.parent_id
    FROM climbing AS c
    JOIN events AS e ON e.rank = c.rank AND e.event_id = c.at_id
    ANTI JOIN modelled AS m ON m.rank = c.rank AND m.event_id = c.at_id
    WHERE e.parent_id IS NOT NULL
), innermost AS MATERIALIZED (
    SELECT m.* FROM modelled AS m
    ANTI JOIN climbing AS c ON c.rank = m.rank AND c.at_id = m.event_id
), launched AS MATERIALIZED (
    SELECT rank, op_id, device, sum(duration_ns) AS time_ns, bool_or(regexp_matches(name, 'tf32|s1688|xf32')) AS is_tf32
    FROM device_events
    WHERE op_id IS NOT NULL
    GROUP BY rank, op_id, device
), rising AS (
    -- From each op that launched work up to the innermost modelled op around it.
    SELECT rank, op_id, op_id AS at_id, device, time_ns, is_tf32 FROM launched
    UNION ALL
    SELECT r.rank, r.op_id, e.parent_id, r.device, r.time_ns, r.is_tf32
    FROM rising AS r
    JOIN events AS e ON e.rank = r.rank AND e.event_id = r.at_id
    ANTI JOIN innermost AS m ON m.rank = r.rank AND m.event_id = r.at_id
    WHERE e.parent_id IS NOT NULL
), timed AS (
    SELECT m.rank, m.event_id, r.device, sum(r.time_ns)::BIGINT AS time_ns, bool_or(r.is_tf32) AS is_tf32
    FROM innermost AS m
    JOIN rising AS r ON r.rank = m.rank AND r.at_id = m.event_id
    GROUP BY m.rank, m.event_id, r.device
    UNION ALL
    SELECT m.rank, m.event_id, 'cpu', m.duration_ns, false
    FROM innermost AS m
    JOIN rank_extent AS x ON x.rank = m.rank AND NOT x.has_device_work
), known AS (
    SELECT m.*, t.device, t.time_ns,
           CASE WHEN t.is_tf32 AND m.dtype = 'float32' THEN 'tf32' ELSE m.dtype END AS computed_in,
           CASE WHEN m.family IN ('matmul', 'convolution', 'attention') THEN computed_in ELSE 'vector' END AS peak_of
    FROM innermost AS m
    JOIN timed AS t ON t.rank = m.rank AND t.event_id = m.event_id
    WHERE t.time_ns > 0
), bandwidths AS (
    SELECT rank, device, max(memory_bandwidth) AS memory_bandwidth FROM device_peaks GROUP BY rank, device
)
SELECT k.rank, k.event_id, k.name, k.family, k.shapes, k.computed_in AS dtype, k.device, k.step, k.site_id, k.module_id,
       k.time_ns, k.flops, k.size_bytes, k.formula, p.peak_flops, b.memory_bandwidth,
       greatest(k.flops / p.peak_flops, k.size_bytes / b.memory_bandwidth) * 1e9 AS attainable_ns
FROM known AS k
LEFT JOIN bandwidths AS b ON b.rank = k.rank AND b.device = k.device
LEFT JOIN device_peaks AS p ON p.rank = k.rank AND p.device = k.device AND p.dtype = k.peak_of
