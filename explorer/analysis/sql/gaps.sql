-- gaps: each interval in which a device did nothing, with its cause and the line to blame.
-- Where the next work had not been enqueued when the device went idle, the host was late: the cause is what the host did
-- longest until it enqueued it (the classes of `host_breakdown`), or launch_latency if the time from the call to the
-- start on the device is longer. Where it had been enqueued: waiting if it waited for another stream, an event or a
-- collective (a recorded dependency, or more than 10 us), else back_to_back.
-- Needs: idle_intervals, rank_devices, gap_blame, edges, sites
-- Columns
--   rank INTEGER - Process rank
--   device VARCHAR - Device as text; cpu for a rank without device events, which is idle outside ops
--   start_ns BIGINT ns When the device went idle
--   end_ns BIGINT ns When it worked again
--   duration_ns BIGINT ns Length of the gap
--   step INTEGER - Step in which the gap begins
--   cause VARCHAR - python, op, data, sync, runtime, communication, compile, gc, io, host_unknown, launch_latency, waiting, back_to_back,
--     start (before the first work) or end (after the last)
--   cause_ns BIGINT ns Part of the gap under that cause
--   site_id BIGINT - Line the main thread executed longest during the gap; without line states, the line responsible for the next work
--   file VARCHAR - File of the line
--   line INTEGER - Line number
--   function VARCHAR - Function of the line
--   code VARCHAR - Source text of the line
--   previous_id BIGINT - Work that ended last before the gap
--   next_id BIGINT - Work that began after it
--   launch_id BIGINT - Host event that enqueued the next work
WITH intervals AS MATERIALIZED (
    SELECT i.*, d.place FROM idle_intervals AS i JOIN rank_devices AS d USING (rank, device)
), awaited AS (
    SELECT DISTINCT target_rank AS rank, target_id AS event_id FROM edges
    WHERE kind IN ('stream_wait', 'event_wait', 'semaphore', 'collective')
), judged AS (
    SELECT i.*, l.class, l.class_ns, coalesce(l.site_id, i.next_site_id) AS site_id,
           CASE WHEN i.previous_id IS NULL THEN 'start' WHEN i.next_id IS NULL THEN 'end'
                WHEN l.class IS NOT NULL AND (i.launch_ns IS NULL OR l.class_ns >= i.end_ns - i.launch_ns) THEN l.class
                WHEN i.launch_ns > i.start_ns THEN 'launch_latency'
                WHEN a.event_id IS NOT NULL OR i.end_ns - i.start_ns > 10000 THEN 'waiting' ELSE 'back_to_back' END AS cause
    FROM intervals AS i
    LEFT JOIN gap_blame AS l USING (place, number)
    LEFT JOIN awaited AS a ON a.rank = i.rank AND a.event_id = i.next_id
)
SELECT j.rank, j.device, j.start_ns, j.end_ns, j.end_ns - j.start_ns AS duration_ns, j.step, j.cause,
       CASE WHEN j.cause = j.class THEN j.class_ns WHEN j.cause = 'launch_latency' THEN j.end_ns - j.launch_ns
            ELSE j.end_ns - j.start_ns END AS cause_ns,
       j.site_id, s.file, s.line, s.function, s.code, j.previous_id, j.next_id, j.launch_id
FROM judged AS j
LEFT JOIN sites AS s USING (site_id)
ORDER BY j.rank, j.device, j.start_ns
