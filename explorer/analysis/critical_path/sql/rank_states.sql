-- rank_states: what each thread of a rank executed, in time order by thread.
-- Needs: host_states
-- Parameters: the rank
-- Columns
--   track_id INTEGER -  Host thread
--   start_ns BIGINT  ns Start
--   end_ns   BIGINT  ns End
--   site_id  BIGINT  -  The line; 0: no user code
SELECT track_id, start_ns, start_ns + duration_ns AS end_ns, coalesce(site_id, 0) AS site_id
FROM host_states WHERE rank = ? ORDER BY track_id, start_ns
