-- main_threads: the thread of each rank whose lines explain its idle time: the one with most line states.
-- Needs: host_states
-- Columns
--   rank INTEGER - Process rank
--   track_id INTEGER - Track of the thread
SELECT DISTINCT ON (rank) rank, track_id
FROM (SELECT rank, track_id, count(*) AS states FROM host_states GROUP BY rank, track_id)
ORDER BY rank, states DESC, track_id
