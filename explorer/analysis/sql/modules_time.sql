-- modules_time: host and device time by nn.Module, its own and with everything below it.
-- A forward pass that runs again inside the backward pass (activation checkpointing) is recomputation, not backward.
-- Needs: events, event_sites, modules, device_tracks
-- Columns
--   module_id BIGINT - nn.Module (modules)
--   path VARCHAR - Dotted path from the root module
--   class_name VARCHAR - Class of the module
--   depth BIGINT - 0 for a root module
--   ops BIGINT - Ops that ran in the module itself
--   self_ns BIGINT ns Host time of ops and runtime calls that ran in the module itself
--   device_self_ns BIGINT ns Device time launched from the module itself
--   total_ns BIGINT ns Host time with all modules below
--   device_ns BIGINT ns Device time with all modules below
--   forward_ns BIGINT ns Host time with all modules below, forward and evaluation
--   backward_ns BIGINT ns Host time with all modules below, backward
--   recompute_ns BIGINT ns Host time with all modules below, of the forward pass run again
--   device_forward_ns BIGINT ns Device time with all modules below, forward and evaluation
--   device_backward_ns BIGINT ns Device time with all modules below, backward
--   device_recompute_ns BIGINT ns Device time with all modules below, of the forward pass run again
--   share DOUBLE - Part of all module host time, 0 to 1
--   device_share DOUBLE - Part of all module device time, 0 to 1
WITH RECURSIVE recomputed AS (
    SELECT DISTINCT rank, event_id FROM event_sites WHERE role = 'recomputed'
), work AS (
    SELECT e.module_id, category = 'op' AS is_op,
           CASE WHEN r.event_id IS NOT NULL OR o.event_id IS NOT NULL THEN 'recompute'
                WHEN phase = 'evaluation' THEN 'forward' ELSE phase END AS pass,
           CASE WHEN d.track_id IS NULL AND category IN ('op', 'runtime', 'sync', 'compile') THEN self_ns ELSE 0 END AS host_ns,
           CASE WHEN d.track_id IS NOT NULL AND category IN ('kernel', 'copy', 'fill', 'collective', 'instruction', 'dma')
                THEN duration_ns ELSE 0 END AS device_ns
    FROM events AS e
    LEFT JOIN device_tracks AS d USING (rank, track_id)
    LEFT JOIN recomputed AS r ON r.rank = e.rank AND r.event_id = e.event_id
    LEFT JOIN recomputed AS o ON d.track_id IS NOT NULL AND o.rank = e.rank AND o.event_id = e.op_id
    WHERE e.module_id IS NOT NULL
), own AS (
    SELECT module_id, count(*) FILTER (is_op) AS ops, sum(host_ns) AS self_ns, sum(device_ns) AS device_self_ns,
           coalesce(sum(host_ns) FILTER (pass = 'forward'), 0) AS forward_ns,
           coalesce(sum(host_ns) FILTER (pass = 'backward'), 0) AS backward_ns,
           coalesce(sum(host_ns) FILTER (pass = 'recompute'), 0) AS recompute_ns,
           coalesce(sum(device_ns) FILTER (pass = 'forward'), 0) AS device_forward_ns,
           coalesce(sum(device_ns) FILTER (pass = 'backward'), 0) AS device_backward_ns,
           coalesce(sum(device_ns) FILTER (pass = 'recompute'), 0) AS device_recompute_ns
    FROM work
    GROUP BY module_id
), chain AS (
    SELECT module_id, module_id AS ancestor_id, 0 AS distance FROM modules
    UNION ALL
    SELECT c.module_id, m.parent_id, c.distance + 1
    FROM chain AS c
    JOIN modules AS m ON m.module_id = c.ancestor_id
    WHERE m.parent_id IS NOT NULL AND c.distance < 200
), depths AS (
    SELECT module_id, max(distance) AS depth FROM chain GROUP BY module_id
), rolled AS (
    SELECT c.ancestor_id AS module_id, sum(o.self_ns) AS total_ns, sum(o.device_self_ns) AS device_ns,
           sum(forward_ns) AS forward_ns, sum(backward_ns) AS backward_ns, sum(recompute_ns) AS recompute_ns,
           sum(device_forward_ns) AS device_forward_ns, sum(device_backward_ns) AS device_backward_ns,
           sum(device_recompute_ns) AS device_recompute_ns
    FROM chain AS c
    JOIN own AS o ON o.module_id = c.module_id
    GROUP BY c.ancestor_id
)
SELECT m.module_id, m.path, m.class_name, d.depth::BIGINT AS depth, coalesce(o.ops, 0)::BIGINT AS ops,
       coalesce(o.self_ns, 0)::BIGINT AS self_ns, coalesce(o.device_self_ns, 0)::BIGINT AS device_self_ns,
       r.total_ns::BIGINT AS total_ns, r.device_ns::BIGINT AS device_ns,
       r.forward_ns::BIGINT AS forward_ns, r.backward_ns::BIGINT AS backward_ns, r.recompute_ns::BIGINT AS recompute_ns,
       r.device_forward_ns::BIGINT AS device_forward_ns, r.device_backward_ns::BIGINT AS device_backward_ns,
       r.device_recompute_ns::BIGINT AS device_recompute_ns,
       coalesce(r.total_ns / nullif((SELECT sum(self_ns) FROM own), 0), 0.0) AS share,
       coalesce(r.device_ns / nullif((SELECT sum(device_self_ns) FROM own), 0), 0.0) AS device_share
FROM rolled AS r
JOIN modules AS m USING (module_id)
JOIN depths AS d USING (module_id)
LEFT JOIN own AS o USING (module_id)
ORDER BY device_ns DESC, total_ns DESC, path
