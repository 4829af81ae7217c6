-- modules_time: host and device time by nn.Module, its own and with everything below it.
-- Needs: events, modules, device_tracks
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
--   share DOUBLE - Part of all module host time, 0 to 1
--   device_share DOUBLE - Part of all module device time, 0 to 1
WITH RECURSIVE own AS (
    SELECT e.module_id, count(*) FILTER (category = 'op') AS ops,
           coalesce(sum(self_ns) FILTER (d.track_id IS NULL AND category IN ('op', 'runtime', 'sync', 'compile')), 0)
               AS self_ns,
           coalesce(sum(duration_ns) FILTER (d.track_id IS NOT NULL
               AND category IN ('kernel', 'copy', 'fill', 'collective', 'instruction', 'dma')), 0) AS device_self_ns
    FROM events AS e
    LEFT JOIN device_tracks AS d USING (rank, track_id)
    WHERE e.module_id IS NOT NULL
    GROUP BY e.module_id
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
    SELECT c.ancestor_id AS module_id, sum(o.self_ns) AS total_ns, sum(o.device_self_ns) AS device_ns
    FROM chain AS c
    JOIN own AS o ON o.module_id = c.module_id
    GROUP BY c.ancestor_id
)
SELECT m.module_id, m.path, m.class_name, d.depth::BIGINT AS depth, coalesce(o.ops, 0)::BIGINT AS ops,
       coalesce(o.self_ns, 0)::BIGINT AS self_ns, coalesce(o.device_self_ns, 0)::BIGINT AS device_self_ns,
       r.total_ns::BIGINT AS total_ns, r.device_ns::BIGINT AS device_ns,
       coalesce(r.total_ns / nullif((SELECT sum(self_ns) FROM own), 0), 0.0) AS share,
       coalesce(r.device_ns / nullif((SELECT sum(device_self_ns) FROM own), 0), 0.0) AS device_share
FROM rolled AS r
JOIN modules AS m USING (module_id)
JOIN depths AS d USING (module_id)
LEFT JOIN own AS o USING (module_id)
ORDER BY device_ns DESC, total_ns DESC, path
