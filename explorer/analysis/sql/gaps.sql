-- gaps: each interval in which a device did nothing, with the events around it and its cause.
-- Needs: work_intervals, rank_extent, capture_pauses, events, step_windows, sites
-- Columns
--   rank INTEGER - Process rank
--   device VARCHAR - Device as text; cpu for a rank without device events
--   start_ns BIGINT ns When the device went idle
--   end_ns BIGINT ns When it worked again
--   duration_ns BIGINT ns Length of the gap
--   step INTEGER - Step in which the gap begins
--   cause VARCHAR - start, end, host (the next work had not been launched), launch (it had, and had not begun) or unknown
--   previous_id BIGINT - Work that ended last before the gap
--   next_id BIGINT - Work that began after it
--   launch_id BIGINT - Host event that enqueued the next work
--   site_id BIGINT - Line responsible for the next work
--   file VARCHAR - Its file
--   line INTEGER - Its number
--   code VARCHAR - Its text
WITH recorded AS (
    SELECT w.rank, w.device, w.event_id, w.start_ns, w.end_ns FROM work_intervals AS w
    UNION ALL
    SELECT r.rank, d.device, NULL, r.start_ns, r.start_ns FROM rank_extent AS r JOIN (SELECT DISTINCT rank, device FROM work_intervals) AS d USING (rank)
    UNION ALL
    SELECT r.rank, d.device, NULL, r.end_ns, r.end_ns FROM rank_extent AS r JOIN (SELECT DISTINCT rank, device FROM work_intervals) AS d USING (rank)
    UNION ALL
    SELECT p.rank, d.device, NULL, p.start_ns, p.end_ns FROM capture_pauses AS p JOIN (SELECT DISTINCT rank, device FROM work_intervals) AS d USING (rank)
), ordered AS (
    SELECT rank, device, event_id AS next_id, start_ns AS end_ns,
           max(end_ns) OVER earlier AS start_ns, arg_max(event_id, end_ns) OVER earlier AS previous_id
    FROM recorded
    WINDOW earlier AS (PARTITION BY rank, device ORDER BY start_ns, end_ns ROWS BETWEEN UNBOUNDED PRECEDING AND 1 PRECEDING)
), idle AS (
    SELECT * FROM ordered WHERE end_ns > start_ns
)
SELECT i.rank, i.device, i.start_ns, i.end_ns, i.end_ns - i.start_ns AS duration_ns, s.step,
       CASE WHEN i.previous_id IS NULL THEN 'start' WHEN i.next_id IS NULL THEN 'end'
            WHEN h.event_id IS NULL THEN 'unknown' WHEN h.start_ns > i.start_ns THEN 'host' ELSE 'launch' END AS cause,
       i.previous_id, i.next_id, n.launch_id, n.site_id, x.file, x.line, x.code
FROM idle AS i
LEFT JOIN events AS n ON n.rank = i.rank AND n.event_id = i.next_id
LEFT JOIN events AS h ON h.rank = i.rank AND h.event_id = n.launch_id
LEFT JOIN sites AS x ON x.site_id = n.site_id
ASOF LEFT JOIN step_windows AS s ON s.rank = i.rank AND i.start_ns >= s.start_ns
ORDER BY i.rank, i.device, i.start_ns
