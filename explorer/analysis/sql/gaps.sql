-- gaps: each interval in which a device did nothing, with its cause and the line to blame.
-- Where the next work had not been enqueued when the device went idle, the host was late: the cause is what the host did
-- longest until it enqueued it (the classes of `host_breakdown`), or launch_latency if the time from the call to the
-- start on the device is longer. Where it had been enqueued: waiting if it waited for another stream, an event or a
-- collective (a recorded dependency, or more than 10 us), else back_to_back.
-- Needs: idle_intervals, rank_devices, host_boundaries, host_states, main_threads, edges, sites
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
WITH devices AS MATERIALIZED (
    SELECT * FROM rank_devices
), intervals AS MATERIALIZED (
    SELECT i.*, d.place FROM idle_intervals AS i JOIN devices AS d USING (rank, device)
), late AS MATERIALIZED (
    SELECT rank, place, number, start_ns, least(end_ns, coalesce(launch_ns, end_ns)) AS end_ns
    FROM intervals
    WHERE coalesce(launch_ns, end_ns) > start_ns
), waiting AS MATERIALIZED (
    SELECT DISTINCT rank, place FROM late
), boundaries AS (
    SELECT place, at_ns, blocking, working, 0 AS number FROM host_boundaries JOIN waiting USING (rank)
    UNION ALL
    SELECT place, unnest([start_ns, end_ns]), 0, 0, unnest([number, -number]) FROM late
), segments AS (
    SELECT place, lead(at_ns) OVER sweep - at_ns AS length_ns, (sum(number) OVER sweep)::BIGINT AS number,
           (sum(blocking) OVER sweep)::BIGINT AS blocking, (sum(working) OVER sweep)::BIGINT AS working
    FROM boundaries
    WINDOW sweep AS (PARTITION BY place ORDER BY at_ns)
), classed AS (
    SELECT place, number, sum(length_ns)::BIGINT AS class_ns,
           CASE WHEN blocking >= 35184372088832 THEN 'gc' WHEN blocking >= 1073741824 THEN 'compile'
                WHEN blocking >= 32768 THEN 'data' WHEN blocking >= 1 THEN 'io' WHEN working >= 281474976710656 THEN 'op'
                WHEN working >= 68719476736 THEN 'runtime' WHEN working >= 16777216 THEN 'communication'
                WHEN working >= 4096 THEN 'sync' WHEN working >= 1 THEN 'python' ELSE 'host_unknown' END AS class
    FROM segments
    WHERE number > 0 AND length_ns > 0
    GROUP BY ALL
), longest AS (
    SELECT place, number, arg_max(class, (class_ns, class)) AS class, max(class_ns) AS class_ns
    FROM classed
    GROUP BY place, number
), stated AS (
    SELECT place, start_ns, start_ns + duration_ns AS end_ns, site_id
    FROM host_states
    JOIN main_threads USING (rank, track_id)
    JOIN waiting USING (rank)
    WHERE site_id IS NOT NULL
), line_boundaries AS (
    SELECT place, start_ns AS at_ns, site_id AS site, 0 AS number FROM stated
    UNION ALL
    SELECT place, end_ns, -site_id, 0 FROM stated
    UNION ALL
    SELECT place, unnest([start_ns, end_ns]), 0, unnest([number, -number]) FROM late
), line_segments AS (
    SELECT place, lead(at_ns) OVER sweep - at_ns AS length_ns, (sum(number) OVER sweep)::BIGINT AS number,
           (sum(site) OVER sweep)::BIGINT AS site_id
    FROM line_boundaries
    WINDOW sweep AS (PARTITION BY place ORDER BY at_ns)
), lined AS (
    SELECT place, number, arg_max(site_id, (line_ns, site_id)) AS site_id
    FROM (SELECT place, number, site_id, sum(length_ns) AS line_ns FROM line_segments
          WHERE number > 0 AND site_id > 0 AND length_ns > 0 GROUP BY place, number, site_id)
    GROUP BY place, number
), awaited AS (
    SELECT DISTINCT target_rank AS rank, target_id AS event_id FROM edges
    WHERE kind IN ('stream_wait', 'event_wait', 'semaphore', 'collective')
), judged AS (
    SELECT i.*, l.class, l.class_ns, coalesce(n.site_id, i.next_site_id) AS site_id,
           CASE WHEN i.previous_id IS NULL THEN 'start' WHEN i.next_id IS NULL THEN 'end'
                WHEN l.class IS NOT NULL AND (i.launch_ns IS NULL OR l.class_ns >= i.end_ns - i.launch_ns) THEN l.class
                WHEN i.launch_ns > i.start_ns THEN 'launch_latency'
                WHEN a.event_id IS NOT NULL OR i.end_ns - i.start_ns > 10000 THEN 'waiting' ELSE 'back_to_back' END AS cause
    FROM intervals AS i
    LEFT JOIN longest AS l USING (place, number)
    LEFT JOIN lined AS n USING (place, number)
    LEFT JOIN awaited AS a ON a.rank = i.rank AND a.event_id = i.next_id
)
SELECT j.rank, j.device, j.start_ns, j.end_ns, j.end_ns - j.start_ns AS duration_ns, j.step, j.cause,
       CASE WHEN j.cause = j.class THEN j.class_ns WHEN j.cause = 'launch_latency' THEN j.end_ns - j.launch_ns
            ELSE j.end_ns - j.start_ns END AS cause_ns,
       j.site_id, s.file, s.line, s.function, s.code, j.previous_id, j.next_id, j.launch_id
FROM judged AS j
LEFT JOIN sites AS s USING (site_id)
ORDER BY j.rank, j.device, j.start_ns
