-- rank_waits: for each rank and step: how long it waited for others, how long it made them wait, and its own work.
-- Times of calls that overlap count once. A wait in which the rank computed is no wait.
-- Needs: rank_steps, collective_waits, rank_collectives, capture_windows
-- Columns
--   rank INTEGER - Process rank
--   step INTEGER - Step number; null for ranks without steps
--   complete BOOLEAN - False for a step cut by the edge of the capture
--   disturbed BOOLEAN - The capture of some rank began or resumed in it, which made the others wait; false where all are
--   wall_ns BIGINT ns Time of the step
--   wait_ns BIGINT ns Time in which it waited for other ranks to arrive, with nothing to compute
--   transfer_ns BIGINT ns Time in its calls after the last arrival
--   own_ns BIGINT ns wall_ns - wait_ns, at least 0: what the step would take alone
--   last_calls BIGINT - Calls at which it arrived last, alone or with others, beyond the uncertainty of the clocks
--   calls BIGINT - Matched calls
--   caused_ns BIGINT ns Time in which others waited for it at calls of whole groups: from the median rank's arrival to its own.
--     (Of two neighbours in a pipeline one always waits.)
--   compute_ns BIGINT ns Time in which its busiest device computed
--   data_ns BIGINT ns Host time fetching batches
--   python_ns BIGINT ns Host time in Python
--   op_ns BIGINT ns Host time in ops
WITH shared AS (
    SELECT *, max(exposed_wait_ns) OVER (PARTITION BY match_id) AS longest_wait_ns FROM collective_waits WHERE ranks_seen > 1
), spans AS (
    SELECT rank, step, 'wait' AS kind, least(last_arrival_ns, end_ns) - exposed_wait_ns AS start_ns,
           least(last_arrival_ns, end_ns) AS end_ns FROM shared
    UNION ALL
    SELECT rank, step, 'transfer', end_ns - transfer_ns, end_ns FROM shared
    UNION ALL
    SELECT rank, step, 'caused', arrival_ns - least(arrival_ns - (last_arrival_ns - late_ns), longest_wait_ns), arrival_ns
    FROM shared WHERE is_last AND operation <> 'send_recv'
), behind AS (
    SELECT *, max(end_ns) OVER (PARTITION BY rank, step, kind ORDER BY start_ns, end_ns ROWS BETWEEN UNBOUNDED PRECEDING AND 1 PRECEDING) AS reached_ns
    FROM spans WHERE end_ns > start_ns
), lengths AS (
    SELECT rank, step, kind, sum(greatest(0, end_ns - greatest(start_ns, coalesce(reached_ns, start_ns))))::BIGINT AS length_ns
    FROM behind GROUP BY rank, step, kind
), waited AS (
    SELECT rank, step, max(length_ns) FILTER (kind = 'wait') AS wait_ns, max(length_ns) FILTER (kind = 'transfer') AS transfer_ns,
           max(length_ns) FILTER (kind = 'caused') AS caused_ns
    FROM lengths GROUP BY rank, step
), counted AS (
    SELECT rank, step, count(*) FILTER (is_last) AS last_calls, count(*) AS calls FROM shared GROUP BY rank, step
), resumed AS (
    SELECT arg_min(c.step, c.start_ns) AS step
    FROM capture_windows AS w
    JOIN rank_collectives AS c ON c.rank = w.rank AND c.start_ns >= w.start_ns AND c.start_ns < w.end_ns
    GROUP BY w.rank, w.start_ns
), judged AS (
    SELECT *, step IS NOT NULL AND step IN (SELECT r.step FROM resumed AS r WHERE r.step IS NOT NULL) AS disturbed FROM rank_steps
)
SELECT s.rank, s.step, s.complete, s.disturbed AND bool_or(s.complete AND NOT s.disturbed) OVER () AS disturbed, s.wall_ns,
       coalesce(w.wait_ns, 0)::BIGINT AS wait_ns, coalesce(w.transfer_ns, 0)::BIGINT AS transfer_ns,
       greatest(0, s.wall_ns - coalesce(w.wait_ns, 0))::BIGINT AS own_ns, coalesce(n.last_calls, 0) AS last_calls,
       coalesce(n.calls, 0) AS calls, coalesce(w.caused_ns, 0)::BIGINT AS caused_ns, s.compute_ns, s.host_data_ns AS data_ns,
       s.host_python_ns AS python_ns, s.host_op_ns AS op_ns
FROM judged AS s
LEFT JOIN waited AS w ON w.rank = s.rank AND w.step IS NOT DISTINCT FROM s.step
LEFT JOIN counted AS n ON n.rank = s.rank AND n.step IS NOT DISTINCT FROM s.step
ORDER BY s.step, s.rank
