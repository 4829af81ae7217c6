-- event_lines: which source lines an event is charged to; the shares of an event sum to 1.
-- Every sum per line goes through this view.
-- Needs: events, event_sites
-- Columns
--   rank INTEGER - Process rank
--   event_id BIGINT - The event
--   site_id BIGINT - Source line
--   share DOUBLE - Part of the event's cost charged to this line, 0 to 1
SELECT rank, event_id, site_id, share FROM event_sites WHERE role = 'responsible'
UNION ALL
SELECT e.rank, e.event_id, e.site_id, 1.0 AS share
FROM events AS e
WHERE e.site_id IS NOT NULL
  AND NOT EXISTS (
    SELECT 1 FROM event_sites AS s
    WHERE s.rank = e.rank AND s.event_id = e.event_id AND s.role = 'responsible')
