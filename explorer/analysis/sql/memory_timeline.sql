-- memory_timeline: allocated and reserved bytes after every allocation and free.
-- Where the source gives totals they are used; else they are summed from the recorded events, from 0.
-- Needs: memory_events
-- Columns
--   rank INTEGER - Process rank
--   device VARCHAR - cpu, cuda:0, neuron:0 ...
--   timestamp_ns BIGINT ns When
--   event_id BIGINT - The memory event
--   action VARCHAR - alloc, free, segment_alloc ...
--   size_bytes BIGINT bytes Bytes allocated (positive) or freed (negative)
--   allocated_bytes BIGINT bytes Allocated afterwards
--   reserved_bytes BIGINT bytes Reserved afterwards, where the source knows
--   op_id BIGINT - Op during which it happened
--   site_id BIGINT - Responsible source line
--   category VARCHAR - parameter, gradient, activation, optimizer_state, temporary, input or unknown
--   step INTEGER - Step it happened in
SELECT rank, device, timestamp_ns, event_id, action, size_bytes,
       coalesce(allocated_bytes, sum(size_bytes) FILTER (action IN ('alloc', 'free')) OVER (
           PARTITION BY rank, device ORDER BY timestamp_ns, event_id ROWS UNBOUNDED PRECEDING))::BIGINT AS allocated_bytes,
       reserved_bytes, op_id, site_id, category, step
FROM memory_events
ORDER BY rank, device, timestamp_ns, event_id
