-- step_calls: the shared calls of usable steps, in aligned time.
-- Needs: collective_waits, rank_waits
-- Columns
--   step INTEGER - Step the call began in on this rank; -1 for a rank without steps
--   match_id BIGINT - The call
--   rank INTEGER - Process rank
--   arrival_ns BIGINT ns When the rank arrived
--   end_ns BIGINT ns When the call ended on it
SELECT coalesce(w.step, -1) AS step, w.match_id, w.rank, w.arrival_ns, w.end_ns
FROM collective_waits AS w
JOIN rank_waits AS s ON s.rank = w.rank AND s.step IS NOT DISTINCT FROM w.step
WHERE w.ranks_seen > 1 AND s.complete AND NOT s.disturbed
ORDER BY w.step, w.arrival_ns, w.match_id, w.rank
