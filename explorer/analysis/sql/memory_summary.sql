-- memory_summary: peak, growth and churn of memory per rank and device.
-- Needs: memory_timeline
-- Columns
--   rank INTEGER - Process rank
--   device VARCHAR - cpu, cuda:0, neuron:0 ...
--   peak_bytes BIGINT bytes Most allocated at any time
--   peak_ns BIGINT ns When that was
--   peak_reserved_bytes BIGINT bytes Most reserved at any time, where known
--   first_bytes BIGINT bytes Allocated after the first event
--   last_bytes BIGINT bytes Allocated after the last event
--   growth_bytes BIGINT bytes last_bytes - first_bytes
--   allocations BIGINT - Allocations
--   frees BIGINT - Frees
--   churn_bytes BIGINT bytes Sum of all allocations
SELECT rank, device, max(allocated_bytes) AS peak_bytes, arg_max(timestamp_ns, allocated_bytes) AS peak_ns,
       max(reserved_bytes) AS peak_reserved_bytes, arg_min(allocated_bytes, (timestamp_ns, event_id)) AS first_bytes,
       arg_max(allocated_bytes, (timestamp_ns, event_id)) AS last_bytes,
       arg_max(allocated_bytes, (timestamp_ns, event_id)) - arg_min(allocated_bytes, (timestamp_ns, event_id)) AS growth_bytes,
       count(*) FILTER (action = 'alloc') AS allocations, count(*) FILTER (action = 'free') AS frees,
       coalesce(sum(size_bytes) FILTER (action = 'alloc'), 0)::BIGINT AS churn_bytes
FROM memory_timeline
GROUP BY rank, device
ORDER BY rank, device
