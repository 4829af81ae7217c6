-- missing_calls: the first calls that not all ranks of their group recorded; only where calls are numbered.
-- Needs: collectives_matched
-- Columns
--   match_id BIGINT - The call
--   group_name VARCHAR - Process group
--   operation VARCHAR - Operation
--   step INTEGER - Step it began in
--   group_size INTEGER - Ranks in the group
--   ranks_seen BIGINT - Ranks that recorded it
--   ranks INTEGER[] - Which
SELECT match_id, any_value(group_name) AS group_name, any_value(operation) AS operation, any_value(step) AS step,
       max(group_size) AS group_size, any_value(ranks_seen) AS ranks_seen, list_sort(list(rank)) AS ranks
FROM collectives_matched
WHERE confidence = 'sequence' AND ranks_seen < group_size
GROUP BY match_id
ORDER BY match_id
LIMIT 20
