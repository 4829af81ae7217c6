-- ops_by_shape: framework ops by name, input shapes and dtypes, for the ops whose shapes were recorded.
-- Needs: events, device_events
-- Columns
--   name VARCHAR - Op name
--   shapes VARCHAR - JSON list of input shapes
--   dtypes VARCHAR - JSON list of input dtypes
--   calls BIGINT - How many
--   total_ns BIGINT ns Sum of host durations, enclosed ops included
--   self_ns BIGINT ns Sum of host durations without enclosed events
--   p50_ns BIGINT ns Median host duration
--   max_ns BIGINT ns Longest host duration
--   device_ns BIGINT ns Device time of the work these ops themselves launched
--   kernels BIGINT - Device events these ops themselves launched
WITH device AS (
    SELECT rank, op_id, sum(duration_ns) AS device_ns, count(*) AS kernels FROM device_events WHERE op_id IS NOT NULL GROUP BY rank, op_id
)
SELECT e.name, e.shapes, e.dtypes, count(*) AS calls, sum(e.duration_ns)::BIGINT AS total_ns, sum(e.self_ns)::BIGINT AS self_ns,
       quantile_disc(e.duration_ns, 0.5) AS p50_ns, max(e.duration_ns) AS max_ns, coalesce(sum(d.device_ns), 0)::BIGINT AS device_ns,
       coalesce(sum(d.kernels), 0)::BIGINT AS kernels
FROM events AS e
LEFT JOIN device AS d ON d.rank = e.rank AND d.op_id = e.event_id
WHERE e.category = 'op' AND e.shapes IS NOT NULL
GROUP BY e.name, e.shapes, e.dtypes
ORDER BY device_ns DESC, self_ns DESC, e.name, e.shapes
