-- group_lists: each process group whose ranks are known.
-- Needs: rank_groups
-- Columns
--   group_name VARCHAR - Process group
--   description VARCHAR - What it is for
--   ranks VARCHAR - JSON list of its ranks
--   calls BIGINT - Communication calls of all ranks
SELECT group_name, any_value(group_description) AS description, any_value(group_ranks) AS ranks, sum(calls)::BIGINT AS calls
FROM rank_groups
WHERE group_ranks IS NOT NULL
GROUP BY group_name, members
ORDER BY group_name, members
