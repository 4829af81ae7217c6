-- stage_messages: sends and receives in complete steps, in the order in which each rank made them.
-- Needs: rank_collectives, rank_steps
-- Columns
--   group_name VARCHAR - Process group
--   members BIGINT - Which ranks it has, as a number (group_rollup)
--   rank INTEGER - Process rank
--   step INTEGER - Step
--   operation VARCHAR - send or recv
--   peer INTEGER - The other rank
SELECT c.group_name, c.members, c.rank, c.step, c.operation, c.peer
FROM rank_collectives AS c
JOIN rank_steps AS s ON s.rank = c.rank AND s.step = c.step AND s.complete
WHERE c.operation IN ('send', 'recv') AND c.peer IS NOT NULL
ORDER BY c.group_name, c.members, c.step, c.rank, c.start_ns, c.event_id
