-- usable_spans: the complete steps in which no capture began, in aligned time.
-- Needs: rank_steps, rank_clocks, rank_waits
-- Columns
--   rank INTEGER - Process rank
--   step INTEGER - Step number; -1 for a rank without steps
--   start_ns BIGINT ns Start, aligned
--   end_ns BIGINT ns Start plus the step's time
SELECT s.rank, coalesce(s.step, -1) AS step,
       s.start_ns - round(c.offset_ns + c.drift_ppb * (s.start_ns - c.reference_ns) / 1e9)::BIGINT AS start_ns,
       s.start_ns - round(c.offset_ns + c.drift_ppb * (s.start_ns - c.reference_ns) / 1e9)::BIGINT + s.wall_ns AS end_ns
FROM rank_steps AS s
JOIN rank_clocks AS c USING (rank)
JOIN rank_waits AS w ON w.rank = s.rank AND w.step IS NOT DISTINCT FROM s.step
WHERE s.complete AND NOT w.disturbed
ORDER BY step, rank
