-- main_threads: the thread of each rank whose lines explain its idle time: the one with most line states, workers of
-- DataLoaders aside.
-- Needs: host_states, tracks
-- Columns
--   rank INTEGER - Process rank
--   track_id INTEGER - Track of the thread
SELECT DISTINCT ON (rank) rank, track_id
FROM (SELECT rank, track_id, count(*) AS states FROM host_states GROUP BY rank, track_id)
LEFT JOIN tracks AS t USING (rank, track_id)
WHERE NOT coalesce(starts_with(t.process_name, 'DataLoader worker'), false)
ORDER BY rank, states DESC, track_id
