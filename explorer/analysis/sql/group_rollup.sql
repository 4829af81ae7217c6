-- group_rollup: the process groups that each rank communicated in. Where a rank holds both sides of its communication, calls
-- are those of the side that moved the data (collective_rollup).
-- Needs: collectives
-- Columns
--   rank INTEGER - Process rank
--   group_name VARCHAR - Process group; empty where the source did not say
--   members BIGINT - A number made from group_ranks; 0 where the source did not say
--   group_description VARCHAR - What the group is for, as the program named it
--   group_ranks VARCHAR - JSON list of the ranks in the group
--   group_size INTEGER - Ranks in the group
--   calls BIGINT - Communication calls
WITH sided AS (
    SELECT *, bool_or(side = 'device') OVER (PARTITION BY rank) AS has_device FROM collectives
)
SELECT rank, coalesce("group", '') AS group_name,
       coalesce((md5_number_lower(replace(group_ranks, ' ', '')) >> 11)::BIGINT, 0) AS members,
       min(group_description) AS group_description, min(group_ranks) AS group_ranks, max(group_size) AS group_size, count(*) AS calls
FROM sided
WHERE side = 'device' OR NOT has_device
GROUP BY 1, 2, 3
ORDER BY rank, group_name, members
