-- straggler_causes: where ranks spend more of their critical path than the median of the others, over the steps given.
-- Parameters: $ranks, the ranks asked about; $late and $steps, pairs of such a rank and a step to look at. A rank without pairs is
-- compared over all usable steps.
-- Needs: rank_path, rank_waits, sites
-- Columns
--   straggler INTEGER - The rank asked about
--   kind VARCHAR - Kind of path piece (critical_path)
--   site_id BIGINT - Line; null where unknown
--   file VARCHAR - Its file
--   line INTEGER - Its number
--   function VARCHAR - Its function
--   code VARCHAR - Its text
--   more_ns BIGINT ns How much more per step
--   steps BIGINT - In how many of the steps it spent at least half of that more there
--   of_steps BIGINT - Steps that were looked at
WITH pairs AS (
    SELECT unnest($late::INTEGER[]) AS straggler, unnest($steps::INTEGER[]) AS step
), asked AS (
    -- Ranks that are compared over all steps share one choice of steps.
    SELECT rank AS straggler, CASE WHEN rank IN (SELECT straggler FROM pairs) THEN rank ELSE -1 END AS choice
    FROM (SELECT unnest($ranks::INTEGER[]) AS rank)
), usable AS (
    SELECT rank, step FROM rank_waits WHERE complete AND NOT disturbed
), chosen AS (
    SELECT -1 AS choice, rank, step FROM usable WHERE EXISTS (SELECT 1 FROM asked WHERE choice = -1)
    UNION ALL
    SELECT p.straggler, u.rank, u.step FROM pairs AS p JOIN usable AS u USING (step)
), counted AS (
    SELECT choice, rank, count(DISTINCT step) AS steps FROM chosen GROUP BY choice, rank
), per_rank AS (
    SELECT c.choice, c.rank, p.kind, p.site_id, sum(p.duration_ns) AS duration_ns
    FROM chosen AS c
    JOIN rank_path AS p ON p.rank = c.rank AND p.step IS NOT DISTINCT FROM c.step
    GROUP BY c.choice, c.rank, p.kind, p.site_id
), filled AS (
    SELECT c.choice, c.rank, p.kind, p.site_id, coalesce(r.duration_ns, 0) / greatest(c.steps, 1) AS per_step_ns
    FROM (SELECT DISTINCT choice, kind, site_id FROM per_rank) AS p
    JOIN counted AS c USING (choice)
    LEFT JOIN per_rank AS r ON r.choice = c.choice AND r.rank = c.rank AND r.kind = p.kind AND r.site_id IS NOT DISTINCT FROM p.site_id
), compared AS (
    SELECT a.straggler, f.kind, f.site_id, max(f.per_step_ns) FILTER (f.rank = a.straggler)
               - coalesce(median(f.per_step_ns) FILTER (f.rank <> a.straggler), 0) AS more_ns
    FROM asked AS a
    JOIN filled AS f USING (choice)
    GROUP BY a.straggler, f.kind, f.site_id
), largest AS (
    SELECT c.*, a.choice FROM compared AS c JOIN asked AS a USING (straggler)
    WHERE c.more_ns > 0
    QUALIFY row_number() OVER (PARTITION BY c.straggler ORDER BY c.more_ns DESC, c.kind, c.site_id) <= $most
), own AS (
    -- What the straggler spent there in each step, and on average.
    SELECT l.straggler, l.kind, l.site_id, l.more_ns, c.step, sum(p.duration_ns) AS duration_ns
    FROM largest AS l
    JOIN chosen AS c ON c.choice = l.choice AND c.rank = l.straggler
    LEFT JOIN rank_path AS p ON p.rank = c.rank AND p.step IS NOT DISTINCT FROM c.step AND p.kind = l.kind
      AND p.site_id IS NOT DISTINCT FROM l.site_id
    GROUP BY ALL
), repeated AS (
    SELECT straggler, kind, site_id, count(*) FILTER (coalesce(duration_ns, 0) - (mean_ns - more_ns) >= more_ns / 2) AS steps, count(*) AS of_steps
    FROM (SELECT *, avg(coalesce(duration_ns, 0)) OVER (PARTITION BY straggler, kind, site_id) AS mean_ns FROM own)
    GROUP BY straggler, kind, site_id
)
SELECT l.straggler, l.kind, l.site_id, s.file, s.line, s.function, s.code, round(l.more_ns)::BIGINT AS more_ns, r.steps, r.of_steps
FROM largest AS l
JOIN repeated AS r ON r.straggler = l.straggler AND r.kind = l.kind AND r.site_id IS NOT DISTINCT FROM l.site_id
LEFT JOIN sites AS s ON s.site_id = l.site_id
ORDER BY l.straggler, l.more_ns DESC, l.kind, l.site_id
