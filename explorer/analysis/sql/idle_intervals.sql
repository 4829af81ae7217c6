-- idle_intervals: each interval in which a device did nothing, with the events around it and the launch of the next work.
-- Needs: work_intervals, rank_devices, rank_extent, capture_pauses, events, step_windows
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
WITH recorded AS (
    SELECT rank, device, event_id, start_ns, end_ns FROM work_intervals
    UNION ALL
    SELECT rank, device, NULL, unnest([start_ns, end_ns]), unnest([start_ns, end_ns]) FROM rank_extent JOIN rank_devices USING (rank)
    UNION ALL
    SELECT rank, device, NULL, start_ns, end_ns FROM capture_pauses JOIN rank_devices USING (rank)
), reached AS (
    SELECT rank, device, event_id AS next_id, start_ns AS end_ns, max(end_ns) OVER earlier AS start_ns
    FROM recorded
    WINDOW earlier AS (PARTITION BY rank, device ORDER BY start_ns, end_ns ROWS BETWEEN UNBOUNDED PRECEDING AND 1 PRECEDING)
), idle AS (
    SELECT rank, device, row_number() OVER (PARTITION BY rank, device ORDER BY start_ns) AS number, start_ns, end_ns, next_id
    FROM reached
    WHERE end_ns > start_ns
), before AS (
    SELECT i.rank, i.device, i.number, max(r.event_id) AS previous_id
    FROM idle AS i
    JOIN recorded AS r ON r.rank = i.rank AND r.device = i.device AND r.end_ns = i.start_ns
    GROUP BY i.rank, i.device, i.number
)
SELECT i.rank, i.device, i.number, i.start_ns, i.end_ns, CASE WHEN i.start_ns < s.end_ns THEN s.step END AS step,
       b.previous_id, i.next_id, n.launch_id, h.start_ns AS launch_ns, n.site_id AS next_site_id
FROM idle AS i
LEFT JOIN before AS b USING (rank, device, number)
LEFT JOIN events AS n ON n.rank = i.rank AND n.event_id = i.next_id
LEFT JOIN events AS h ON h.rank = i.rank AND h.event_id = n.launch_id
ASOF LEFT JOIN step_windows AS s ON s.rank = i.rank AND i.start_ns >= s.start_ns
