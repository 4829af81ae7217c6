-- memory_steps: memory of each device in each step: peak, growth and churn. Growth that does not stop is a leak.
-- Needs: memory_timeline, step_windows
-- Columns
--   rank INTEGER - Process rank
--   device VARCHAR - cpu, cuda:0, neuron:0 ...
--   step INTEGER - Step
--   peak_bytes BIGINT bytes Most allocated in the step
--   end_bytes BIGINT bytes Allocated after the last event of the step
--   growth_bytes BIGINT bytes end_bytes minus that of the step before; null for the first
--   reserved_bytes BIGINT bytes Most reserved in the step, where known
--   unused_share DOUBLE - Part of the reserved memory that was not allocated at the step's peak: fragmentation and cache, 0 to 1
--   allocations BIGINT - Allocations
--   churn_bytes BIGINT bytes Sum of all allocations
WITH placed AS (
    SELECT t.*, CASE WHEN t.timestamp_ns < s.end_ns THEN s.number END AS number, s.step AS window_step
    FROM memory_timeline AS t
    ASOF JOIN step_windows AS s ON s.rank = t.rank AND t.timestamp_ns >= s.start_ns
), summed AS (
    SELECT rank, device, number, any_value(window_step) AS step, max(allocated_bytes) AS peak_bytes,
           arg_max(allocated_bytes, (timestamp_ns, event_id)) AS end_bytes, max(reserved_bytes) AS reserved_bytes,
           arg_max(reserved_bytes, allocated_bytes) AS reserved_at_peak,
           count(*) FILTER (action = 'alloc') AS allocations, coalesce(sum(size_bytes) FILTER (action = 'alloc'), 0)::BIGINT AS churn_bytes
    FROM placed
    WHERE number IS NOT NULL
    GROUP BY rank, device, number
)
SELECT rank, device, step, peak_bytes, end_bytes, end_bytes - lag(end_bytes) OVER (PARTITION BY rank, device ORDER BY number) AS growth_bytes,
       reserved_bytes, 1 - peak_bytes / nullif(reserved_at_peak, 0) AS unused_share, allocations, churn_bytes
FROM summed
ORDER BY rank, device, number
