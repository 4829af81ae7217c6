-- ops_by_step: framework ops by name in each step of each rank.
-- Needs: events, device_events
-- Columns
--   rank INTEGER - Process rank
--   step INTEGER - Step; null outside steps
--   name VARCHAR - Op name
--   calls BIGINT - How many
--   total_ns BIGINT ns Sum of host durations, enclosed ops included
--   self_ns BIGINT ns Sum of host durations without enclosed events
--   device_ns BIGINT ns Device time of the work these ops themselves launched
--   kernels BIGINT - Device events these ops themselves launched
WITH device AS (
    SELECT rank, op_id, sum(duration_ns) AS device_ns, count(*) AS kernels FROM device_events WHERE op_id IS NOT NULL GROUP BY rank, op_id
)
SELECT e.rank, e.step, e.name, count(*) AS calls, sum(e.duration_ns)::BIGINT AS total_ns, sum(e.self_ns)::BIGINT AS self_ns,
       coalesce(sum(d.device_ns), 0)::BIGINT AS device_ns, coalesce(sum(d.kernels), 0)::BIGINT AS kernels
FROM events AS e
LEFT JOIN device AS d ON d.rank = e.rank AND d.op_id = e.event_id
WHERE e.category = 'op'
GROUP BY e.rank, e.step, e.name
ORDER BY e.rank, e.step, device_ns DESC, self_ns DESC, e.name
