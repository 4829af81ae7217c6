-- work_intervals: the intervals that count as a device's work, by class; the input of `breakdown` and `gaps`.
-- Kernels and instructions are compute, collectives communication, copies, fills and DMA transfers copies. A rank
-- without device events has the device `cpu`: its compute are the outermost ops of all threads, its communication the
-- collectives called on the host.
-- Needs: device_events, events, rank_extent
-- Columns
--   rank INTEGER - Process rank
--   device VARCHAR - Device as text; cpu for a rank without device events
--   event_id BIGINT - The event
--   class VARCHAR - compute, communication or copy
--   start_ns BIGINT ns Start time
--   end_ns BIGINT ns End time
--   launch_id BIGINT - Host event that enqueued it
--   site_id BIGINT - Responsible source line
SELECT rank, device, event_id,
       CASE WHEN category IN ('kernel', 'instruction') THEN 'compute'
            WHEN category = 'collective' THEN 'communication' ELSE 'copy' END AS class,
       start_ns, end_ns, launch_id, site_id
FROM device_events
UNION ALL
SELECT e.rank, 'cpu' AS device, e.event_id,
       CASE WHEN e.category = 'op' THEN 'compute' ELSE 'communication' END AS class,
       e.start_ns, e.start_ns + e.duration_ns AS end_ns, e.launch_id, e.site_id
FROM events AS e
JOIN rank_extent AS r ON r.rank = e.rank AND NOT r.has_device_work
WHERE e.category IN ('op', 'collective')
