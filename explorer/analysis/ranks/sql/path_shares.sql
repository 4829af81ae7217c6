-- path_shares: the job's critical path by rank and kind.
-- Needs: job_path
-- Columns
--   rank INTEGER - The rank the job was waiting for
--   kind VARCHAR - own or transfer
--   duration_ns BIGINT ns Length
--   share DOUBLE - Part of the path, 0 to 1
SELECT rank, kind, sum(duration_ns)::BIGINT AS duration_ns, sum(duration_ns) / sum(sum(duration_ns)) OVER () AS share
FROM job_path
GROUP BY rank, kind
ORDER BY duration_ns DESC, rank, kind
