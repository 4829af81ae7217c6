-- neuron_bounds: lower bounds of each core's time, from what its profile moved and computed; the largest one binds.
-- A gap between a bound and its ideal is room, not a promise: removing one wait often uncovers another.
-- Definitions: the public profiling skills of AWS (performance bounds).
-- Needs: neuron_work, neuron_lane_time, neuron.DmaPacket, neuron.DmaPacketAggregated, neuron.TensorInfo, neuron.Metadata
-- Columns
--   rank INTEGER - Process rank
--   profile VARCHAR - Device profile
--   device VARCHAR - Logical core as a device
--   core INTEGER - Physical core within the logical one
--   total_ns BIGINT ns Length of the profile
--   memory_ns BIGINT ns Memory bound: time with a DMA under way
--   memory_ideal_ns BIGINT ns The same bytes at full DMA bandwidth (packets over 4 bytes, instruction fetches left out)
--   memory_no_reload_ns BIGINT ns Each input and output moved once, at full DMA bandwidth
--   compute_ns BIGINT ns Compute bound: time with the Tensor engine at work
--   compute_ideal_ns BIGINT ns The same matrix work at the Tensor engine's peak
--   compute_useful_ns BIGINT ns That without transposes
--   pipeline_ns BIGINT ns Perfect pipeline: the busiest engine alone
--   busiest_engine VARCHAR - Which engine that is
--   bound VARCHAR - memory, compute or the busiest other engine: the largest of the bounds
--   bound_ns BIGINT ns That bound
--   speedup_limit DOUBLE ratio total_ns of bound_ns: what perfect overlap would give
WITH spans AS (
    SELECT rank, profile, max(end_ns) - min(start_ns) AS total_ns
    FROM neuron_lane_time WHERE lane <> 'throttle' GROUP BY rank, profile
), facts AS (
    SELECT rank, profile, max(dma_ddr_bandwidth) AS bandwidth,
           max(tensor_engine_num_rows * tensor_engine_num_cols * 2 * tensor_engine_clock_freq) AS flop_per_ns
    FROM neuron.Metadata GROUP BY rank, profile
), packets AS (
    SELECT rank, profile, coalesce(pcore_idx, 0)::INTEGER AS core, sum(transfer_bytes) AS moved
    FROM neuron.DmaPacket WHERE queue_type IS DISTINCT FROM 'instruction' AND transfer_bytes > 4 GROUP BY ALL
), blocks AS (
    SELECT rank, profile, coalesce(pcore_idx, 0)::INTEGER AS core, sum(transfer_bytes) AS moved
    FROM neuron.DmaPacketAggregated WHERE queue_type IS DISTINCT FROM 'instruction' AND transfer_bytes > 4 GROUP BY ALL
), tensors AS (
    SELECT rank, profile, coalesce(pcore_idx, 0)::INTEGER AS core, sum(size) AS size
    FROM neuron.TensorInfo WHERE type IN ('IN', 'OUT') GROUP BY ALL
), work AS (
    SELECT rank, profile, core, sum(matmul_flops) AS flops, sum(matmul_transpose_flops) AS transposes
    FROM neuron_work GROUP BY ALL
), wide AS (
    SELECT rank, profile, device, core,
           coalesce(max(busy_ns) FILTER (WHERE lane = 'dma'), 0) AS memory_ns,
           coalesce(max(busy_ns) FILTER (WHERE lane = 'Tensor'), 0) AS compute_ns,
           coalesce(max(busy_ns) FILTER (WHERE lane IN ('Tensor', 'Vector', 'Scalar', 'GpSimd')), 0) AS pipeline_ns,
           arg_max(lane, busy_ns) FILTER (WHERE lane IN ('Tensor', 'Vector', 'Scalar', 'GpSimd')) AS busiest_engine
    FROM neuron_lane_time GROUP BY ALL
), bounds AS (
    SELECT w.rank, w.profile, w.device, w.core, s.total_ns, w.memory_ns,
           round(1e9 * coalesce(p.moved, b.moved) / f.bandwidth)::BIGINT AS memory_ideal_ns,
           round(1e9 * t.size / f.bandwidth)::BIGINT AS memory_no_reload_ns,
           w.compute_ns, round(k.flops / f.flop_per_ns)::BIGINT AS compute_ideal_ns,
           round((k.flops - coalesce(k.transposes, 0)) / f.flop_per_ns)::BIGINT AS compute_useful_ns,
           w.pipeline_ns, w.busiest_engine, greatest(w.memory_ns, w.compute_ns, w.pipeline_ns) AS bound_ns
    FROM wide AS w JOIN spans AS s USING (rank, profile)
    LEFT JOIN facts AS f USING (rank, profile)
    LEFT JOIN packets AS p USING (rank, profile, core) LEFT JOIN blocks AS b USING (rank, profile, core)
    LEFT JOIN tensors AS t USING (rank, profile, core) LEFT JOIN work AS k USING (rank, profile, core)
)
SELECT rank, profile, device, core, total_ns, memory_ns, memory_ideal_ns, memory_no_reload_ns, compute_ns, compute_ideal_ns,
       compute_useful_ns, pipeline_ns, busiest_engine,
       CASE WHEN memory_ns >= pipeline_ns THEN 'memory' WHEN busiest_engine = 'Tensor' THEN 'compute' ELSE busiest_engine END AS bound,
       bound_ns, total_ns / nullif(bound_ns, 0) AS speedup_limit
FROM bounds
ORDER BY rank, device, profile, core
