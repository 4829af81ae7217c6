-- neuron_idle_causes: why each compute engine stood still, in sum.
-- Needs: neuron.Instruction, neuron_idle
-- Columns
--   rank INTEGER - Process rank
--   profile VARCHAR - Device profile
--   device VARCHAR - Logical core as a device
--   core INTEGER - Physical core within the logical one
--   engine VARCHAR - The engine that was idle
--   cause VARCHAR - dma, input, spill, engine, collective, short, start, end or unknown
--   blocker VARCHAR - Queue or engine that was waited for
--   method VARCHAR - flow, semaphore, coincidence or none: how that is known
--   gaps BIGINT count Gaps
--   idle_ns BIGINT ns Their time
--   idle_share DOUBLE share Of all idle time of this engine
WITH sums AS (
    SELECT rank, profile, device, core, engine, cause, blocker, method, count(*) AS gaps, sum(duration_ns)::BIGINT AS idle_ns
    FROM neuron_idle GROUP BY ALL
)
SELECT *, idle_ns / sum(idle_ns) OVER (PARTITION BY rank, profile, device, core, engine) AS idle_share
FROM sums
ORDER BY rank, device, profile, core, engine, idle_ns DESC
