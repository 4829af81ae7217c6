-- device_waits: which events of a rank wait for which, beyond the order of their stream.
-- Needs: edges
-- Parameters: the rank
-- Columns
--   source_id BIGINT - The event that is waited for
--   target_id BIGINT - The event that waits
SELECT source_id, target_id FROM edges
WHERE rank = ? AND target_rank = rank AND kind IN ('stream_wait', 'event_wait', 'semaphore', 'data')
