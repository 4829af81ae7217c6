-- path_waits: calls in which a rank really waited for another one, beyond what the clocks are uncertain by; aligned times.
-- Needs: collective_waits
-- Columns
--   rank INTEGER - The rank that waited
--   last_arrival_ns BIGINT ns When the last rank arrived
--   end_ns BIGINT ns When the call ended on the rank that waited
--   last_rank INTEGER - The rank that arrived last
--   match_id BIGINT - The call
--   site_id BIGINT - Line of the call
SELECT rank, last_arrival_ns, end_ns, last_rank, match_id, site_id FROM collective_waits
WHERE ranks_seen > 1 AND last_rank <> rank AND exposed_wait_ns > residual_ns
ORDER BY rank, last_arrival_ns, end_ns, match_id
