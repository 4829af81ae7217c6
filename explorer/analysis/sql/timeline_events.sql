-- timeline_events: what the timeline draws: every event's place, interval, name and the ids it can be coloured by.
-- Needs: events, timeline_names
-- Columns
--   rank INTEGER - Process rank
--   event_id BIGINT - Identity within the rank
--   parent_id BIGINT - Enclosing event on the same track
--   track_id INTEGER - Track it happened on
--   name_code BIGINT - Number of its name (timeline_names)
--   category VARCHAR - What kind of activity
--   start_ns BIGINT ns Start time
--   duration_ns BIGINT ns Duration
--   site_id BIGINT - Responsible source line
--   module_id BIGINT - Module it ran in
SELECT e.rank, e.event_id, e.parent_id, e.track_id, n.name_code, e.category, e.start_ns, e.duration_ns, e.site_id, e.module_id
FROM events AS e
JOIN timeline_names AS n USING (name)
