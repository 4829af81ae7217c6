-- idle_intervals: each interval in which a device did nothing, with the events around it and the launch of the next work.
-- Needs: idle_gaps, events, step_windows
-- Columns
--   rank INTEGER - Process rank
--   device VARCHAR - Device as text; cpu for a rank without device events
--   number BIGINT - 1 for the first one of the device
--   start_ns BIGINT ns When the device went idle
--   end_ns BIGINT ns When it worked again
--   step INTEGER - Step in which it begins
--   previous_id BIGINT - Work that ended last before; null at the edge of the recording
--   next_id BIGINT - Work that began after; null at the edge of the recording
--   launch_id BIGINT - Host event that enqueued the next work
--   launch_ns BIGINT ns When it did
--   next_site_id BIGINT - Line responsible for the next work
SELECT i.rank, i.device, i.number, i.start_ns, i.end_ns, CASE WHEN i.start_ns < s.end_ns THEN s.step END AS step,
       i.previous_id, i.next_id, i.launch_id, h.start_ns AS launch_ns, i.next_site_id
FROM idle_gaps AS i
LEFT JOIN events AS h ON h.rank = i.rank AND h.event_id = i.launch_id
ASOF LEFT JOIN step_windows AS s ON s.rank = i.rank AND i.start_ns >= s.start_ns
