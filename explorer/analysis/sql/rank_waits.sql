-- rank_waits: for each rank and step: how long it waited for others, how long it made them wait, and its own work.
-- Needs: rank_steps, collective_waits
-- Columns
--   rank INTEGER - Process rank
--   step INTEGER - Step number; null for ranks without steps
--   complete BOOLEAN - False for a step cut by the edge of the capture
--   wall_ns BIGINT ns Time of the step
--   wait_ns BIGINT ns Time in which it waited for other ranks to arrive (overlapping calls count once each)
--   transfer_ns BIGINT ns Time in its calls after the last arrival
--   own_ns BIGINT ns wall_ns - wait_ns, at least 0: what the step would take alone
--   last_calls BIGINT - Calls at which it arrived last, beyond the uncertainty of the clocks
--   calls BIGINT - Matched calls
--   caused_ns BIGINT ns How much later than the median rank it arrived at those, summed
--   compute_ns BIGINT ns Time in which its busiest device computed
--   data_ns BIGINT ns Host time fetching batches
--   python_ns BIGINT ns Host time in Python
--   op_ns BIGINT ns Host time in ops
WITH waited AS (
    SELECT rank, step, sum(wait_ns) AS wait_ns, sum(transfer_ns) AS transfer_ns, count(*) FILTER (is_last) AS last_calls,
           count(*) AS calls, coalesce(sum(late_ns) FILTER (is_last), 0) AS caused_ns
    FROM collective_waits
    WHERE ranks_seen > 1
    GROUP BY rank, step
)
SELECT s.rank, s.step, s.complete, s.wall_ns, coalesce(w.wait_ns, 0)::BIGINT AS wait_ns,
       coalesce(w.transfer_ns, 0)::BIGINT AS transfer_ns, greatest(0, s.wall_ns - coalesce(w.wait_ns, 0))::BIGINT AS own_ns,
       coalesce(w.last_calls, 0) AS last_calls, coalesce(w.calls, 0) AS calls, coalesce(w.caused_ns, 0)::BIGINT AS caused_ns,
       s.compute_ns, s.host_data_ns AS data_ns, s.host_python_ns AS python_ns, s.host_op_ns AS op_ns
FROM rank_steps AS s
LEFT JOIN waited AS w ON w.rank = s.rank AND w.step IS NOT DISTINCT FROM s.step
ORDER BY s.step, s.rank
