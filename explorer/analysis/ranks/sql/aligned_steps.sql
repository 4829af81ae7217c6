-- aligned_steps: from when to when each rank was in steps, in aligned time.
-- Needs: rank_steps, rank_clocks
-- Columns
--   rank INTEGER - Process rank
--   start_ns BIGINT ns Start of a step
--   end_ns BIGINT ns Its end
SELECT s.rank,
       s.start_ns - round(c.offset_ns + c.drift_ppb * (s.start_ns - c.reference_ns) / 1e9)::BIGINT AS start_ns,
       s.start_ns + s.wall_ns - round(c.offset_ns + c.drift_ppb * (s.start_ns + s.wall_ns - c.reference_ns) / 1e9)::BIGINT AS end_ns
FROM rank_steps AS s
JOIN rank_clocks AS c USING (rank)
