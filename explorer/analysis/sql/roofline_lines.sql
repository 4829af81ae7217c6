-- roofline_lines: achieved against attainable by source line. Comprehensions and lambdas count with the line they stand on.
-- Needs: op_roofline, sites
-- Columns
--   site_id BIGINT - Source line (sites), one of its code objects
--   file VARCHAR - File
--   line INTEGER - Line number
--   code VARCHAR - Source text
--   device VARCHAR - Device
--   calls BIGINT - Op calls with known work
--   time_ns BIGINT ns Their time
--   flops BIGINT flop Their operations
--   size_bytes BIGINT bytes Bytes that must move at least
--   achieved_flops DOUBLE flop/s Operations per second
--   achieved_bandwidth DOUBLE bytes/s Bytes per second
--   efficiency DOUBLE - Least time over time; null where peaks are not known or it would be above 1
--   lost_ns BIGINT ns Time above the least time, of calls whose peaks are known; null where none are
SELECT min(r.site_id) AS site_id, s.file, s.line, any_value(s.code) AS code, r.device, count(*) AS calls,
       sum(time_ns)::BIGINT AS time_ns, sum(flops)::BIGINT AS flops, sum(size_bytes)::BIGINT AS size_bytes,
       sum(flops) / sum(time_ns) * 1e9 AS achieved_flops, sum(size_bytes) / sum(time_ns) * 1e9 AS achieved_bandwidth,
       CASE WHEN count(attainable_ns) = count(*) AND sum(attainable_ns) <= sum(time_ns) THEN sum(attainable_ns) / sum(time_ns) END AS efficiency,
       sum(greatest(time_ns - attainable_ns, 0)) FILTER (attainable_ns IS NOT NULL)::BIGINT AS lost_ns
FROM op_roofline AS r
LEFT JOIN sites AS s USING (site_id)
GROUP BY s.file, s.line, CASE WHEN s.line > 0 THEN 0 ELSE r.site_id END, r.device
ORDER BY time_ns DESC, s.file, s.line, site_id
