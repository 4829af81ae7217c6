-- roofline_lines: achieved against attainable by source line.
-- Needs: op_roofline, sites
-- Columns
--   site_id BIGINT - Source line (sites)
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
--   lost_ns BIGINT ns Time above the least time
SELECT r.site_id, any_value(s.file) AS file, any_value(s.line) AS line, any_value(s.code) AS code, r.device, count(*) AS calls,
       sum(time_ns)::BIGINT AS time_ns, sum(flops)::BIGINT AS flops, sum(size_bytes)::BIGINT AS size_bytes,
       sum(flops) / sum(time_ns) * 1e9 AS achieved_flops, sum(size_bytes) / sum(time_ns) * 1e9 AS achieved_bandwidth,
       CASE WHEN count(attainable_ns) = count(*) AND sum(attainable_ns) <= sum(time_ns) THEN sum(attainable_ns) / sum(time_ns) END AS efficiency,
       sum(greatest(time_ns - attainable_ns, 0))::BIGINT AS lost_ns
FROM op_roofline AS r
LEFT JOIN sites AS s USING (site_id)
GROUP BY r.site_id, r.device
ORDER BY time_ns DESC, r.site_id
