-- usable_steps: how late each rank made the others wait, in complete steps in which no capture began.
-- Needs: rank_waits
-- Columns
--   rank INTEGER - Process rank
--   step INTEGER - Step number; -1 for a rank without steps
--   wall_ns BIGINT ns Time of the step
--   caused_ns BIGINT ns Time in which others waited for it
--   compute_ns BIGINT ns Time in which its busiest device computed
SELECT rank, coalesce(step, -1) AS step, wall_ns, caused_ns, compute_ns FROM rank_waits
WHERE complete AND NOT disturbed
ORDER BY rank, step
