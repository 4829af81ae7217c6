-- given_to_ranks: what each rank was given to work on in each usable step, and how long it computed.
-- Needs: rank_waits, rank_steps, rank_collectives
-- Columns
--   rank INTEGER - Process rank
--   step INTEGER - Step number
--   compute_ns BIGINT ns Time in which its busiest device computed
--   input_rows BIGINT - Tokens or samples (step_rollup); null where shapes were not recorded
--   exchanged_bytes BIGINT bytes What it sent in all-to-alls; null without any
SELECT w.rank, w.step, w.compute_ns, s.input_rows, x.exchanged_bytes
FROM rank_waits AS w
JOIN rank_steps AS s ON s.rank = w.rank AND s.step = w.step
LEFT JOIN (
    SELECT rank, step, sum(size_bytes)::BIGINT AS exchanged_bytes
    FROM rank_collectives
    WHERE operation = 'all_to_all'
    GROUP BY rank, step
) AS x ON x.rank = w.rank AND x.step = w.step
WHERE w.complete AND NOT w.disturbed
