-- job_groups: the named process groups, with the ranks that communicated in them.
-- Needs: rank_groups
-- Columns
--   group_name VARCHAR - Process group
--   group_description VARCHAR - What it is for
--   group_size INTEGER - Ranks in it; null where the source did not say
--   ranks INTEGER[] - Ranks that recorded a call of it
--   calls BIGINT - Communication calls of all ranks
SELECT group_name, any_value(group_description) AS group_description, max(group_size) AS group_size,
       list(DISTINCT rank ORDER BY rank) AS ranks, sum(calls)::BIGINT AS calls
FROM rank_groups
WHERE group_name <> ''
GROUP BY group_name, members
ORDER BY group_name, members
