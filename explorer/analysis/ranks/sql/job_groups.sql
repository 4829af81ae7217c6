-- job_groups: the named process groups, with the ranks that communicated in them and what of it was exposed.
-- Needs: rank_groups, collective_times, rank_waits
-- Columns
--   group_name VARCHAR - Process group
--   group_description VARCHAR - What it is for
--   group_size INTEGER - Ranks in it; null where the source did not say
--   ranks INTEGER[] - Ranks that recorded a call of it
--   calls BIGINT - Communication calls of all ranks
--   exposed_ns BIGINT ns Communication of the group that no compute hid, waiting for other ranks included: mean per rank and
--     complete step; null without such steps
WITH exposed AS (
    SELECT coalesce(t.group_name, '') AS group_name, t.members, sum(t.exposed_ns) AS exposed_ns
    FROM collective_times AS t
    JOIN rank_waits AS w ON w.rank = t.rank AND w.step IS NOT DISTINCT FROM t.step AND w.complete AND NOT w.disturbed
    GROUP BY ALL
), counted AS (
    SELECT g.group_name, g.members, count(*) AS steps
    FROM rank_groups AS g
    JOIN rank_waits AS w ON w.rank = g.rank AND w.complete AND NOT w.disturbed
    GROUP BY ALL
)
SELECT g.group_name, any_value(g.group_description) AS group_description, max(g.group_size) AS group_size,
       list(DISTINCT g.rank ORDER BY g.rank) AS ranks, sum(g.calls)::BIGINT AS calls,
       round(any_value(coalesce(e.exposed_ns, 0) / c.steps))::BIGINT AS exposed_ns
FROM rank_groups AS g
LEFT JOIN exposed AS e USING (group_name, members)
LEFT JOIN counted AS c USING (group_name, members)
WHERE g.group_name <> ''
GROUP BY g.group_name, g.members
ORDER BY g.group_name, g.members
