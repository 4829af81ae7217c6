-- recorded_calls: every call of a flight recorder dump that has a number, with its line.
-- Needs: rank_collectives, rank_groups, sites
-- Columns
--   group_name VARCHAR - Process group
--   members BIGINT - Which ranks it has, as a number (group_rollup)
--   description VARCHAR - What it is for
--   group_ranks VARCHAR - JSON list of its ranks
--   rank INTEGER - Process rank
--   sequence BIGINT - Number of the call in its group
--   operation VARCHAR - all_reduce, all_gather ...
--   size_bytes BIGINT bytes Message size
--   site_id BIGINT - Responsible line
--   file VARCHAR - Its file
--   line INTEGER - Its number
--   code VARCHAR - Its text
SELECT c.group_name, c.members, any_value(g.group_description) AS description, any_value(g.group_ranks) AS group_ranks, c.rank,
       c.sequence, any_value(c.operation) AS operation, any_value(c.size_bytes) AS size_bytes, any_value(c.site_id) AS site_id,
       any_value(s.file) AS file, any_value(s.line) AS line, any_value(s.code) AS code
FROM rank_collectives AS c
LEFT JOIN rank_groups AS g USING (rank, group_name, members)
LEFT JOIN sites AS s USING (site_id)
WHERE c.sequence IS NOT NULL AND c.operation NOT IN ('send', 'recv')
GROUP BY c.group_name, c.members, c.rank, c.sequence
ORDER BY c.group_name, c.members, c.sequence, c.rank
