-- gap_causes: idle time of each device by cause and line, largest first.
-- Needs: gaps
-- Columns
--   rank INTEGER - Process rank
--   device VARCHAR - Device as text
--   cause VARCHAR - As in `gaps`
--   site_id BIGINT - The line to blame
--   file VARCHAR - File of the line
--   line INTEGER - Line number
--   code VARCHAR - Source text of the line
--   gaps BIGINT - How many
--   total_ns BIGINT ns Sum of their lengths
--   longest_ns BIGINT ns The longest
--   share DOUBLE - Part of the device's idle time, 0 to 1
SELECT rank, device, cause, site_id, any_value(file) AS file, any_value(line) AS line, any_value(code) AS code, count(*) AS gaps,
       sum(duration_ns)::BIGINT AS total_ns, max(duration_ns) AS longest_ns,
       sum(duration_ns) / sum(sum(duration_ns)) OVER (PARTITION BY rank, device) AS share
FROM gaps
GROUP BY rank, device, cause, site_id
ORDER BY total_ns DESC, rank, device, cause, site_id
