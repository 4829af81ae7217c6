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
WITH devices AS MATERIALIZED (
    SELECT * FROM rank_devices
), recorded AS (
    SELECT place, event_id, start_ns, end_ns FROM work_intervals JOIN devices USING (rank, device)
    UNION ALL
    SELECT place, NULL, unnest([start_ns, end_ns]), unnest([start_ns, end_ns]) FROM rank_extent JOIN devices USING (rank)
    UNION ALL
    SELECT place, NULL, start_ns, end_ns FROM capture_pauses JOIN devices USING (rank)
), reached AS (
    SELECT place, event_id AS next_id, start_ns AS end_ns, max(end_ns) OVER earlier AS start_ns
    FROM recorded
    WINDOW earlier AS (PARTITION BY place ORDER BY start_ns, end_ns ROWS BETWEEN UNBOUNDED PRECEDING AND 1 PRECEDING)
), idle AS (
    SELECT d.rank, d.device, place, row_number() OVER (PARTITION BY place ORDER BY r.start_ns) AS number, r.start_ns, r.end_ns, r.next_id
    FROM reached AS r
    JOIN devices AS d USING (place)
    WHERE r.end_ns > r.start_ns
), before AS (
    SELECT i.place, i.number, max(r.event_id) AS previous_id
    FROM idle AS i
    JOIN recorded AS r ON r.place = i.place AND r.end_ns = i.start_ns
    GROUP BY i.place, i.number
)
SELECT i.rank, i.device, i.number, i.start_ns, i.end_ns, CASE WHEN i.start_ns < s.end_ns THEN s.step END AS step,
       b.previous_id, i.next_id, n.launch_id, h.start_ns AS launch_ns, n.site_id AS next_site_id
FROM idle AS i
LEFT JOIN before AS b USING (place, number)
LEFT JOIN events AS n ON n.rank = i.rank AND n.event_id = i.next_id
LEFT JOIN events AS h ON h.rank = i.rank AND h.event_id = n.launch_id
ASOF LEFT JOIN step_windows AS s ON s.rank = i.rank AND i.start_ns >= s.start_ns
