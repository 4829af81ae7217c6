-- track_extents: how much of each category each track holds, and from when to when; the input of `rank_extent` and
-- `rank_devices`, which so read the events once.
-- Needs: events
-- Columns
--   rank INTEGER - Process rank
--   track_id INTEGER - Track within the rank
--   category VARCHAR - Category of its events
--   events BIGINT - How many
--   start_ns BIGINT ns Start of the first event
--   end_ns BIGINT ns End of the last event
SELECT rank, track_id, category, count(*) AS events, min(start_ns) AS start_ns, max(start_ns + duration_ns) AS end_ns
FROM events
GROUP BY rank, track_id, category
