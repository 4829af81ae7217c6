-- critical_path_kinds: what the critical path of each rank is made of, over its complete steps (over the whole recording
-- for a rank without steps).
-- Needs: critical_path, steps
-- Columns
--   rank INTEGER - Process rank
--   kind VARCHAR - Kind of the pieces (critical_path)
--   pieces BIGINT - Pieces of this kind
--   total_ns BIGINT ns Their time
--   per_step_ns BIGINT ns Their time per complete step
--   share DOUBLE - Part of the path, 0 to 1; the shares of a rank add up to 1
WITH counted AS (
    SELECT rank, count(*) FILTER (complete) AS complete_steps FROM steps GROUP BY rank
), taken AS (
    SELECT p.*, greatest(coalesce(c.complete_steps, 0), 1) AS steps
    FROM critical_path AS p
    LEFT JOIN counted AS c USING (rank)
    LEFT JOIN steps AS s ON s.rank = p.rank AND s.step = p.step AND p.start_ns >= s.start_ns AND p.start_ns < s.start_ns + s.duration_ns
    WHERE coalesce(c.complete_steps, 0) = 0 OR s.complete
)
SELECT rank, kind, count(*) AS pieces, sum(duration_ns)::BIGINT AS total_ns,
       round(sum(duration_ns) / any_value(steps))::BIGINT AS per_step_ns,
       sum(duration_ns) / sum(sum(duration_ns)) OVER (PARTITION BY rank) AS share
FROM taken
GROUP BY rank, kind
ORDER BY rank, total_ns DESC, kind
