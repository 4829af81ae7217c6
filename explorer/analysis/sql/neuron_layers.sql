-- neuron_layers: engine time by layer of the compiled module tree.
-- Needs: neuron.Instruction
-- Columns
--   rank INTEGER - Process rank
--   profile VARCHAR - Device profile
--   layer VARCHAR - Module path; null: not recorded
--   instructions BIGINT count Instructions
--   start_ts BIGINT ns First start on the device's clock
--   end_ts BIGINT ns Last end on the device's clock
--   tensor_ns BIGINT ns Sum of durations on the Tensor engine
--   other_ns BIGINT ns Sum of durations on the other engines
--   raw_flops BIGINT flop Matrix work
--   hbm_bytes BIGINT bytes HBM bytes moved by its instructions
SELECT rank, profile, nullif(layer, '') AS layer, count(*) AS instructions, min(start_ts) AS start_ts, max(end_ts) AS end_ts,
       coalesce(sum(coalesce(duration_ns, end_ts - start_ts)) FILTER (WHERE lower(engine) IN ('tensor', 'pe')), 0)::BIGINT AS tensor_ns,
       coalesce(sum(coalesce(duration_ns, end_ts - start_ts)) FILTER (WHERE lower(engine) NOT IN ('tensor', 'pe')), 0)::BIGINT AS other_ns,
       sum(raw_flops)::BIGINT AS raw_flops, sum(coalesce(hbm_read_bytes, 0) + coalesce(hbm_write_bytes, 0))::BIGINT AS hbm_bytes
FROM neuron.Instruction
GROUP BY ALL
ORDER BY rank, profile, tensor_ns + other_ns DESC, layer
