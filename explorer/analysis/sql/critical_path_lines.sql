-- critical_path_lines: source lines by their time on the critical path, over the complete steps of each rank. Only time
-- on the path can shorten a step. Comprehensions and lambdas count with the line they stand on, as in lines_by_place.
-- Needs: critical_path, steps, sites
-- Columns
--   rank INTEGER - Process rank
--   site_id BIGINT - Source line (sites), the costliest of its code objects; null: no line known
--   file VARCHAR - File of the line
--   line INTEGER - Line number
--   function VARCHAR - Functions whose code stands on the line, costliest first
--   code VARCHAR - Source text
--   host_ns BIGINT ns Time on the path on the host
--   device_ns BIGINT ns Time on the path on devices, with launch latency and gaps
--   total_ns BIGINT ns Both
--   per_step_ns BIGINT ns Both, per complete step
--   share DOUBLE - Part of the path of the rank, 0 to 1
WITH counted AS (
    SELECT rank, count(*) FILTER (complete) AS complete_steps FROM steps GROUP BY rank
), taken AS (
    SELECT p.*, greatest(coalesce(c.complete_steps, 0), 1) AS steps,
           p.kind IN ('kernel', 'copy', 'fill', 'instruction', 'dma', 'launch_latency', 'device_gap') AS on_device
    FROM critical_path AS p
    LEFT JOIN counted AS c USING (rank)
    LEFT JOIN steps AS s ON s.rank = p.rank AND s.step = p.step AND p.start_ns >= s.start_ns AND p.start_ns < s.start_ns + s.duration_ns
    WHERE coalesce(c.complete_steps, 0) = 0 OR s.complete
), summed AS (
    SELECT rank, site_id, coalesce(sum(duration_ns) FILTER (NOT on_device), 0)::BIGINT AS host_ns,
           coalesce(sum(duration_ns) FILTER (on_device), 0)::BIGINT AS device_ns, sum(duration_ns)::BIGINT AS total_ns,
           round(sum(duration_ns) / any_value(steps))::BIGINT AS per_step_ns,
           sum(duration_ns) / sum(sum(duration_ns)) OVER (PARTITION BY rank) AS share
    FROM taken
    GROUP BY rank, site_id
)
SELECT p.rank, first(p.site_id ORDER BY p.total_ns DESC, s.function) AS site_id, s.file, s.line,
       string_agg(s.function, ', ' ORDER BY p.total_ns DESC, s.function) AS function,
       first(s.code ORDER BY p.total_ns DESC, s.function) AS code, sum(p.host_ns)::BIGINT AS host_ns, sum(p.device_ns)::BIGINT AS device_ns,
       sum(p.total_ns)::BIGINT AS total_ns, sum(p.per_step_ns)::BIGINT AS per_step_ns, sum(p.share) AS share
FROM summed AS p
LEFT JOIN sites AS s USING (site_id)
GROUP BY p.rank, s.file, s.line, CASE WHEN s.line > 0 THEN 0 ELSE p.site_id END
ORDER BY p.rank, total_ns DESC, s.file, s.line
