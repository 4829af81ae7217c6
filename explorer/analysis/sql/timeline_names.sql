-- timeline_names: every event name once, numbered by name, so that the timeline holds numbers instead of text.
-- Needs: events
-- Columns
--   name_code BIGINT - Number of the name, from 0, in the order of the names
--   name VARCHAR - Name as recorded
SELECT row_number() OVER (ORDER BY name) - 1 AS name_code, name
FROM (SELECT DISTINCT name FROM events)
