-- neuron_dma: DMA transfers by core, queue type and queue: how many, how large, how fast.
-- Needs: neuron.DmaPacketAggregated
-- Columns
--   rank INTEGER - Process rank
--   profile VARCHAR - Device profile
--   core INTEGER - Physical core
--   queue_type VARCHAR - instruction, input, output, data, software_dynamic, hardware_dynamic or unknown
--   queue VARCHAR - Queue name
--   is_spill BOOLEAN - From or to spill space
--   transfers BIGINT count Transfers
--   transfer_bytes BIGINT bytes Bytes moved
--   mean_bytes DOUBLE bytes Mean size of a transfer
--   small BIGINT count Transfers under 2 KiB
--   transfer_ns BIGINT ns Sum of durations
--   bytes_per_second DOUBLE bytes/s transfer_bytes over transfer_ns
SELECT rank, profile, coalesce(pcore_idx, 0)::INTEGER AS core, coalesce(queue_type, 'unknown') AS queue_type, queue_name AS queue,
       coalesce(source LIKE '%VIRTUAL%' OR dest LIKE '%VIRTUAL%' OR queue_name ILIKE '%spill%', false) AS is_spill,
       count(*) AS transfers, sum(transfer_bytes)::BIGINT AS transfer_bytes, avg(transfer_bytes) AS mean_bytes,
       count(*) FILTER (WHERE transfer_bytes < 2048) AS small,
       sum(coalesce(duration_ns, end_ts - start_ts))::BIGINT AS transfer_ns,
       1e9 * sum(transfer_bytes) / nullif(sum(coalesce(duration_ns, end_ts - start_ts)), 0) AS bytes_per_second
FROM neuron.DmaPacketAggregated
GROUP BY ALL
ORDER BY rank, profile, core, transfer_ns DESC, queue
