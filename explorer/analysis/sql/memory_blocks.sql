-- memory_blocks: each recorded allocation with its release.
-- A release belongs to the last allocation at its address before it. Blocks that were alive before the recording began do
-- not appear.
-- Needs: memory_events
-- Columns
--   rank INTEGER - Process rank
--   device VARCHAR - cpu, cuda:0, neuron:0 ...
--   event_id BIGINT - The allocation
--   address BIGINT - Address as the source gave it
--   size_bytes BIGINT bytes Size
--   allocated_ns BIGINT ns When it was allocated
--   freed_ns BIGINT ns When it was freed; null where it was not while recording
--   op_id BIGINT - Op during which it was allocated
--   site_id BIGINT - Responsible source line
--   category VARCHAR - parameter, gradient, activation, optimizer_state, temporary, input or unknown
--   step INTEGER - Step it was allocated in
WITH ordered AS (
    SELECT rank, device, event_id, address, size_bytes, timestamp_ns AS allocated_ns, op_id, site_id, category, step, action,
           lead(timestamp_ns) OVER following AS freed_ns, lead(action) OVER following AS next_action
    FROM memory_events
    WHERE action IN ('alloc', 'free') AND address IS NOT NULL
    WINDOW following AS (PARTITION BY rank, device, address ORDER BY timestamp_ns, event_id)
)
SELECT rank, device, event_id, address, size_bytes, allocated_ns, CASE WHEN next_action = 'free' THEN freed_ns END AS freed_ns,
       op_id, site_id, coalesce(category, 'unknown') AS category, step
FROM ordered
WHERE action = 'alloc'
