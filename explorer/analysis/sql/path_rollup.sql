-- path_rollup: time on the critical path by rank, step, kind, phase and line.
-- Needs: path_work
-- Columns
--   rank INTEGER - Process rank
--   step INTEGER - Step; null for a rank without steps
--   kind VARCHAR - Kind of the pieces (critical_path)
--   phase VARCHAR - forward, backward, optimizer, data ...
--   site_id BIGINT - Responsible line; null where unknown
--   duration_ns BIGINT ns Time on the path
SELECT rank, step, kind, phase, site_id, sum(duration_ns)::BIGINT AS duration_ns
FROM path_work
GROUP BY rank, step, kind, phase, site_id
ORDER BY rank, step, duration_ns DESC, kind, phase, site_id
