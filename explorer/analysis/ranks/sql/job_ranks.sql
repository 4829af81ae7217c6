-- job_ranks: each rank's usable steps, on average.
-- Needs: rank_waits, rank_clocks
-- Columns
--   rank INTEGER - Process rank
--   host VARCHAR - Host it ran on
--   steps BIGINT - Complete steps in which no capture began
--   step_ns BIGINT ns Median time of a step
--   own_ns BIGINT ns Mean time without waiting for other ranks
--   wait_ns BIGINT ns Mean time waiting for other ranks
--   transfer_ns BIGINT ns Mean time in calls after the last arrival
--   compute_ns BIGINT ns Mean time computing
--   data_ns BIGINT ns Mean host time fetching batches
--   python_ns BIGINT ns Mean host time in Python
--   last_calls BIGINT - Calls at which it arrived last
--   calls BIGINT - Matched calls
SELECT w.rank, c.host, count(*) AS steps, median(w.wall_ns)::BIGINT AS step_ns, round(avg(w.own_ns))::BIGINT AS own_ns,
       round(avg(w.wait_ns))::BIGINT AS wait_ns, round(avg(w.transfer_ns))::BIGINT AS transfer_ns,
       round(avg(w.compute_ns))::BIGINT AS compute_ns, round(avg(w.data_ns))::BIGINT AS data_ns,
       round(avg(w.python_ns))::BIGINT AS python_ns, sum(w.last_calls)::BIGINT AS last_calls, sum(w.calls)::BIGINT AS calls
FROM rank_waits AS w
LEFT JOIN rank_clocks AS c USING (rank)
WHERE w.complete AND NOT w.disturbed
GROUP BY w.rank, c.host
ORDER BY w.rank
