-- stack_times: how long threads were in each user call chain: from host_states; of ranks without them, from the time
-- of ops outside other ops.
-- Needs: host_states, events
-- Columns
--   rank INTEGER - Process rank
--   track_id INTEGER - Track of the thread
--   stack_id BIGINT - User call chain (stacks)
--   duration_ns BIGINT ns Time in it
SELECT rank, track_id, stack_id, sum(duration_ns)::BIGINT AS duration_ns
FROM host_states
WHERE stack_id IS NOT NULL
GROUP BY rank, track_id, stack_id
UNION ALL
SELECT rank, track_id, stack_id, sum(self_ns)::BIGINT AS duration_ns
FROM events
WHERE stack_id IS NOT NULL AND category = 'op' AND rank NOT IN (SELECT DISTINCT rank FROM host_states)
GROUP BY rank, track_id, stack_id
