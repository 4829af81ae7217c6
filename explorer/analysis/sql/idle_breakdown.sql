-- idle_breakdown: what the host was doing while each device did nothing, per step; the parts add up to the idle_ns of
-- `breakdown`, exactly.
-- The class of each instant is that of `host_breakdown`. On the device cpu op_ns is 0: idle there means outside ops.
-- Needs: host_boundaries, work_intervals, rank_devices, step_windows, rank_extent, capture_pauses
-- Columns
--   rank INTEGER - Process rank
--   device VARCHAR - Device as text; cpu for a rank without device events
--   step INTEGER - Step number; null for the time outside steps
--   idle_ns BIGINT ns Time in which the device did nothing
--   op_ns BIGINT ns ... while the host was in framework ops: it could not launch fast enough
--   python_ns BIGINT ns ... in Python
--   data_ns BIGINT ns ... fetching the next batch
--   sync_ns BIGINT ns ... waiting for a device
--   runtime_ns BIGINT ns ... in launches and other runtime calls
--   communication_ns BIGINT ns ... in communication calls
--   compile_ns BIGINT ns ... compiling
--   gc_ns BIGINT ns ... collecting garbage
--   io_ns BIGINT ns ... in input and output
--   unknown_ns BIGINT ns ... with no recorded activity
WITH devices AS MATERIALIZED (
    SELECT * FROM rank_devices
), marks AS (
    SELECT rank, unnest([start_ns, end_ns]) AS at_ns, unnest([number, -number]) AS number, 0 AS recorded FROM step_windows
    UNION ALL
    SELECT rank, unnest([start_ns, end_ns]), 0, unnest([1, -1]) FROM rank_extent
    UNION ALL
    SELECT rank, unnest([start_ns, end_ns]), 0, unnest([-1, 1]) FROM capture_pauses
), work AS (
    SELECT place, start_ns, end_ns FROM work_intervals JOIN devices USING (rank, device)
), boundaries AS (
    SELECT place, at_ns, blocking, working, 0 AS work, 0 AS number, 0 AS recorded FROM host_boundaries JOIN devices USING (rank)
    UNION ALL
    SELECT place, start_ns, 0, 0, 1, 0, 0 FROM work
    UNION ALL
    SELECT place, end_ns, 0, 0, -1, 0, 0 FROM work
    UNION ALL
    SELECT place, at_ns, 0, 0, 0, number, recorded FROM marks JOIN devices USING (rank)
), segments AS (
    SELECT place, lead(at_ns) OVER sweep - at_ns AS length_ns, (sum(number) OVER sweep)::BIGINT AS number,
           sum(recorded) OVER sweep > 0 AS recorded, sum(work) OVER sweep > 0 AS busy,
           (sum(blocking) OVER sweep)::BIGINT AS blocking, (sum(working) OVER sweep)::BIGINT AS working
    FROM boundaries
    WINDOW sweep AS (PARTITION BY place ORDER BY at_ns)
), classed AS (
    SELECT place, number, length_ns,
           CASE WHEN busy THEN 'busy' WHEN blocking >= 35184372088832 THEN 'gc' WHEN blocking >= 1073741824 THEN 'compile'
                WHEN blocking >= 32768 THEN 'data' WHEN blocking >= 1 THEN 'io' WHEN working >= 281474976710656 THEN 'op'
                WHEN working >= 68719476736 THEN 'runtime' WHEN working >= 16777216 THEN 'communication'
                WHEN working >= 4096 THEN 'sync' WHEN working >= 1 THEN 'python' ELSE 'unknown' END AS class
    FROM segments
    WHERE length_ns > 0 AND (recorded OR number > 0)
), totals AS (
    SELECT place, number, coalesce(sum(length_ns) FILTER (class <> 'busy'), 0)::BIGINT AS idle_ns,
           coalesce(sum(length_ns) FILTER (class = 'op'), 0)::BIGINT AS op_ns,
           coalesce(sum(length_ns) FILTER (class = 'python'), 0)::BIGINT AS python_ns,
           coalesce(sum(length_ns) FILTER (class = 'data'), 0)::BIGINT AS data_ns,
           coalesce(sum(length_ns) FILTER (class = 'sync'), 0)::BIGINT AS sync_ns,
           coalesce(sum(length_ns) FILTER (class = 'runtime'), 0)::BIGINT AS runtime_ns,
           coalesce(sum(length_ns) FILTER (class = 'communication'), 0)::BIGINT AS communication_ns,
           coalesce(sum(length_ns) FILTER (class = 'compile'), 0)::BIGINT AS compile_ns,
           coalesce(sum(length_ns) FILTER (class = 'gc'), 0)::BIGINT AS gc_ns,
           coalesce(sum(length_ns) FILTER (class = 'io'), 0)::BIGINT AS io_ns
    FROM classed
    GROUP BY place, number
), whole AS (
    -- A capture pause inside a step is no idle time.
    SELECT d.rank, d.device, t.* EXCLUDE (idle_ns), s.step, t.idle_ns - coalesce(s.end_ns - s.start_ns - s.wall_ns, 0) AS idle_ns
    FROM totals AS t
    JOIN devices AS d USING (place)
    LEFT JOIN step_windows AS s ON s.rank = d.rank AND s.number = t.number
)
SELECT rank, device, step, idle_ns, op_ns, python_ns, data_ns, sync_ns, runtime_ns, communication_ns, compile_ns, gc_ns, io_ns,
       idle_ns - op_ns - python_ns - data_ns - sync_ns - runtime_ns - communication_ns - compile_ns - gc_ns - io_ns AS unknown_ns
FROM whole
ORDER BY rank, device, number = 0, number
