-- collective_rollup: every communication call or kernel with its time, step and line, and its place in its group's order.
-- Where a rank holds both sides of its communication, only the side that moved the data: device kernels, or the backend's
-- own worker threads, before host calls.
-- Needs: collectives, events
-- Columns
--   rank INTEGER - Process rank
--   event_id BIGINT - The event
--   step INTEGER - Step it began in
--   side VARCHAR - host or device
--   group_name VARCHAR - Process group; empty where the source did not say
--   group_description VARCHAR - What the group is for, as the program named it
--   operation VARCHAR - all_reduce, all_gather ...
--   dtype VARCHAR - Element type
--   size_bytes BIGINT bytes Message size
--   group_size INTEGER - Ranks in the group
--   group_ranks VARCHAR - JSON list of the ranks in the group
--   sequence BIGINT - Sequence number in the group, where the source knew it
--   position BIGINT - Number of the call in its group on this rank, from 0
--   step_position BIGINT - Number of the call in its group within its step on this rank, from 0
--   peer INTEGER - Other rank of a point-to-point call
--   start_ns BIGINT ns Start, on the rank's own clock
--   end_ns BIGINT ns End
--   site_id BIGINT - Responsible line
WITH joined AS (
    SELECT c.rank, c.event_id, e.step, c.side, coalesce(c."group", '') AS group_name, c.group_description, c.operation,
           c.dtype, c.size_bytes, c.group_size, c.group_ranks, c.sequence, c.peer, e.start_ns,
           e.start_ns + e.duration_ns AS end_ns, e.site_id,
           bool_or(c.side = 'device') OVER (PARTITION BY c.rank) AS has_device
    FROM collectives AS c
    JOIN events AS e USING (rank, event_id)
)
SELECT rank, event_id, step, side, group_name, group_description, operation, dtype, size_bytes, group_size, group_ranks,
       sequence, row_number() OVER (PARTITION BY rank, group_name ORDER BY start_ns, event_id) - 1 AS position,
       row_number() OVER (PARTITION BY rank, group_name, step ORDER BY start_ns, event_id) - 1 AS step_position,
       peer, start_ns, end_ns, site_id
FROM joined
WHERE side = 'device' OR NOT has_device
ORDER BY rank, start_ns, event_id
