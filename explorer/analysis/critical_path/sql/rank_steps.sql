-- rank_steps: the steps of a rank that lie in a stretch of time, in time order.
-- Needs: steps
-- Parameters: the rank; start and end of the stretch, ns
-- Columns
--   step     INTEGER -  Step number
--   start_ns BIGINT  ns Start
--   end_ns   BIGINT  ns End
--   complete BOOLEAN -  Whether it was recorded from its start to its end
SELECT step, start_ns, start_ns + duration_ns AS end_ns, complete FROM steps WHERE rank = $1 AND start_ns >= $2 AND start_ns + duration_ns <= $3 ORDER BY start_ns
