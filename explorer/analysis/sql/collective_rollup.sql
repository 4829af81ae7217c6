-- collective_rollup: every communication call or kernel with its time, step and line, and its place in its group's order.
-- Where a rank holds both sides of its communication, only the side that moved the data: device kernels, or the backend's
-- own worker threads, before host calls. Work of a backend's thread begins with the call that asked for it: the rank was
-- ready then, even where the thread was still busy with an earlier call. Kernels named SendRecv that an all-to-all launched are one.
-- Needs: collectives, events, tracks, work_intervals, rank_extent, step_windows
-- Columns
--   rank INTEGER - Process rank
--   event_id BIGINT - The event
--   step INTEGER - Step it belongs to; by time where nothing links it to the host
--   side VARCHAR - host or device
--   group_name VARCHAR - Process group; empty where the source did not say
--   group_description VARCHAR - What the group is for, as the program named it
--   operation VARCHAR - all_reduce, all_gather ...
--   dtype VARCHAR - Element type
--   size_bytes BIGINT bytes Message size
--   group_size INTEGER - Ranks in the group
--   members BIGINT - A number made from the ranks in the group (group_rollup): groups of one name in different ranks are told
--     apart by it; 0 where the source did not say
--   sequence BIGINT - Sequence number in the group, where the source knew it
--   position BIGINT - Number of the call in its group on this rank, from 0
--   step_position BIGINT - Number of the call in its group within its step on this rank, from 0
--   peer INTEGER - Other rank of a point-to-point call
--   start_ns BIGINT ns When the rank was ready for it, on the rank's own clock
--   end_ns BIGINT ns End
--   busy_ns BIGINT ns Time within it in which the rank computed: kernels, or ops of a rank without a device
--   site_id BIGINT - Responsible line
WITH joined AS (
    SELECT c.rank, c.event_id, e.step, c.side, coalesce(c."group", '') AS group_name, c.group_description,
           CASE WHEN c.operation = 'send_recv' AND regexp_matches(concat(o.name, ' ', p.name), '(?i)all_?to_?all') THEN 'all_to_all'
                ELSE c.operation END AS operation, c.dtype, c.size_bytes, c.group_size,
           coalesce((md5_number_lower(replace(c.group_ranks, ' ', '')) >> 11)::BIGINT, 0) AS members, c.sequence, c.peer,
           CASE WHEN t.kind = 'thread' THEN least(e.start_ns, coalesce(h.start_ns, e.start_ns)) ELSE e.start_ns END AS start_ns,
           e.start_ns + e.duration_ns AS end_ns, e.site_id,
           bool_or(c.side = 'device') OVER (PARTITION BY c.rank) AS has_device
    FROM collectives AS c
    JOIN events AS e USING (rank, event_id)
    LEFT JOIN tracks AS t ON t.rank = e.rank AND t.track_id = e.track_id
    LEFT JOIN events AS h ON h.rank = e.rank AND h.event_id = e.launch_id AND c.side = 'device'
    LEFT JOIN events AS o ON o.rank = e.rank AND o.event_id = e.op_id AND c.operation = 'send_recv'
    LEFT JOIN events AS p ON p.rank = e.rank AND p.event_id = o.parent_id
), chosen AS (
    SELECT j.* REPLACE (coalesce(j.step, CASE WHEN j.start_ns < w.end_ns THEN w.step END) AS step)
    FROM joined AS j
    ASOF LEFT JOIN step_windows AS w ON w.rank = j.rank AND w.start_ns <= j.start_ns
    WHERE j.side = 'device' OR NOT j.has_device
), marks AS (
    SELECT rank, unnest([start_ns, end_ns]) AS at_ns, unnest([1, -1]) AS change FROM work_intervals WHERE class = 'compute'
    UNION ALL
    -- A call that returns only when others have arrived is no work, whatever op encloses it.
    SELECT e.rank, unnest([e.start_ns, e.start_ns + e.duration_ns]), unnest([-1000000, 1000000])
    FROM events AS e
    JOIN rank_extent AS r ON r.rank = e.rank AND NOT r.has_device_work
    WHERE e.category IN ('op', 'collective')
      AND (starts_with(e.name, 'c10d::') OR starts_with(e.name, '_c10d_functional::') OR starts_with(e.name, 'c10d_functional::'))
), swept AS (
    SELECT rank, at_ns, sum(change) OVER sweep > 0 AS busy, lead(at_ns) OVER sweep - at_ns AS length_ns
    FROM marks
    WINDOW sweep AS (PARTITION BY rank ORDER BY at_ns)
), totals AS (
    SELECT rank, at_ns, busy,
           (coalesce(sum(length_ns) FILTER (busy) OVER (PARTITION BY rank ORDER BY at_ns ROWS BETWEEN UNBOUNDED PRECEDING AND 1 PRECEDING), 0))::BIGINT AS before_ns
    FROM swept
    WHERE length_ns > 0 OR length_ns IS NULL
)
SELECT c.rank, c.event_id, c.step, c.side, c.group_name, c.group_description, c.operation, c.dtype, c.size_bytes, c.group_size,
       c.members, c.sequence, row_number() OVER (PARTITION BY c.rank, c.group_name, c.members ORDER BY c.start_ns, c.event_id) - 1 AS position,
       row_number() OVER (PARTITION BY c.rank, c.group_name, c.members, c.step ORDER BY c.start_ns, c.event_id) - 1 AS step_position,
       c.peer, c.start_ns, c.end_ns,
       (coalesce(l.before_ns + CASE WHEN l.busy THEN c.end_ns - l.at_ns ELSE 0 END, 0)
           - coalesce(f.before_ns + CASE WHEN f.busy THEN c.start_ns - f.at_ns ELSE 0 END, 0))::BIGINT AS busy_ns,
       c.site_id
FROM chosen AS c
ASOF LEFT JOIN totals AS f ON f.rank = c.rank AND f.at_ns <= c.start_ns
ASOF LEFT JOIN totals AS l ON l.rank = c.rank AND l.at_ns <= c.end_ns
ORDER BY c.rank, c.start_ns, c.event_id
