-- op_totals: device time of each op call with everything it encloses: what aten::linear costs on the device, aten::addmm inside it.
-- Needs: events, device_events
-- Columns
--   rank INTEGER - Process rank
--   event_id BIGINT - The op call
--   name VARCHAR - Op name
--   step INTEGER - Step
--   site_id BIGINT - Responsible source line
--   duration_ns BIGINT ns Host duration
--   device_ns BIGINT ns Device time of all work launched inside it
--   kernels BIGINT - Device events launched inside it
WITH RECURSIVE launched AS (
    SELECT rank, op_id AS event_id, sum(duration_ns) AS device_ns, count(*) AS kernels
    FROM device_events WHERE op_id IS NOT NULL GROUP BY rank, op_id
), rising AS (
    SELECT rank, event_id, device_ns, kernels FROM launched
    UNION ALL
    SELECT r.rank, e.parent_id, r.device_ns, r.kernels
    FROM rising AS r
    JOIN events AS e ON e.rank = r.rank AND e.event_id = r.event_id
    WHERE e.parent_id IS NOT NULL
), summed AS (
    SELECT rank, event_id, sum(device_ns)::BIGINT AS device_ns, sum(kernels)::BIGINT AS kernels FROM rising GROUP BY rank, event_id
)
SELECT e.rank, e.event_id, e.name, e.step, e.site_id, e.duration_ns, s.device_ns, s.kernels
FROM summed AS s
JOIN events AS e ON e.rank = s.rank AND e.event_id = s.event_id
WHERE e.category = 'op'
