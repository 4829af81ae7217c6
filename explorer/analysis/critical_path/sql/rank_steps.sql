-- rank_steps: the steps of a rank in time order.
-- Needs: steps
-- Parameters: the rank
-- Columns
--   step     INTEGER -  Step number
--   start_ns BIGINT  ns Start
--   end_ns   BIGINT  ns End
--   complete BOOLEAN -  Whether it was recorded from its start to its end
SELECT step, start_ns, start_ns + duration_ns AS end_ns, complete FROM steps WHERE rank = ? ORDER BY start_ns
