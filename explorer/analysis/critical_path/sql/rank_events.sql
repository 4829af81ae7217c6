-- rank_events: every event of a rank in a stretch of time, in no order, with what ties it to others.
-- Needs: events, tracks
-- Parameters: the categories that have a number; the rank; start and end of the stretch, ns
-- Columns
--   event_id    BIGINT  -  The event
--   parent_id   BIGINT  -  The event around it; -1: none
--   track_id    INTEGER -  Its track
--   category    INTEGER -  Place of its category among the parameter's, from 1; 0: another one
--   start_ns    BIGINT  ns Start
--   end_ns      BIGINT  ns End
--   launch_id   BIGINT  -  The call that enqueued it; -1: none
--   op_id       BIGINT  -  The op that caused it; -1: none
--   site_id     BIGINT  -  Responsible line; 0: unknown
--   on_device   BOOLEAN -  Whether its track is no host thread
SELECT e.event_id, coalesce(e.parent_id, -1) AS parent_id, e.track_id, coalesce(list_position($1, e.category), 0) AS category,
  e.start_ns, e.start_ns + e.duration_ns AS end_ns, coalesce(e.launch_id, -1) AS launch_id, coalesce(e.op_id, -1) AS op_id,
  coalesce(e.site_id, 0) AS site_id, t.kind <> 'thread' AS on_device
FROM events e JOIN tracks t ON t.rank = e.rank AND t.track_id = e.track_id
WHERE e.rank = $2 AND e.start_ns < $4 AND (e.start_ns + e.duration_ns > $3 OR e.start_ns >= $3)
