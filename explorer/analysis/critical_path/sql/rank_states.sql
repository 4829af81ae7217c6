-- rank_states: what each thread of a rank executed in a stretch of time, in time order by thread.
-- Needs: host_states
-- Parameters: the rank; start and end of the stretch, ns
-- Columns
--   track_id INTEGER -  Host thread
--   start_ns BIGINT  ns Start
--   end_ns   BIGINT  ns End
--   site_id  BIGINT  -  The line; 0: no user code
SELECT track_id, start_ns, start_ns + duration_ns AS end_ns, coalesce(site_id, 0) AS site_id
FROM host_states WHERE rank = $1 AND start_ns < $3 AND start_ns + duration_ns > $2 ORDER BY track_id, start_ns
