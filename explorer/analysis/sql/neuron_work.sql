-- neuron_work: what the instructions of each engine of each physical core did, in sums of one pass over a profile.
-- Needs: neuron.Instruction
-- Columns
--   rank INTEGER - Process rank
--   profile VARCHAR - Device profile
--   core INTEGER - Physical core within the logical one
--   engine VARCHAR - Tensor, Vector, Scalar, GpSimd, Sync, or as the profile names another
--   instructions BIGINT count Instructions
--   nki_instructions BIGINT count Of them, those with NKI source
--   instruction_ns BIGINT ns Sum of durations; instructions overlap, so this is no busy time
--   wait_ns BIGINT ns Sum of evt_wait_time_ns; counts one wait several times, good for ranking only
--   raw_flops BIGINT flop Sum of raw_flops
--   adjusted_flops BIGINT flop Sum of adjusted_flops: scaled by what the element type costs on the Tensor engine
--   matmul_flops BIGINT flop Of adjusted_flops, matrix multiplications
--   matmul_transpose_flops BIGINT flop Of matmul_flops, transposes
--   transpose_flops BIGINT flop Of adjusted_flops, transposes
--   hbm_read_bytes BIGINT bytes Read from HBM
--   hbm_write_bytes BIGINT bytes Written to HBM
WITH names AS (
    SELECT * FROM (VALUES ('tensor', 'Tensor'), ('pe', 'Tensor'), ('tensore', 'Tensor'), ('vector', 'Vector'),
        ('dve', 'Vector'), ('vectore', 'Vector'), ('scalar', 'Scalar'), ('act', 'Scalar'), ('activation', 'Scalar'),
        ('scalare', 'Scalar'), ('gpsimd', 'GpSimd'), ('pool', 'GpSimd'), ('gpsimde', 'GpSimd'), ('sync', 'Sync'),
        ('sp', 'Sync'), ('synce', 'Sync')) AS n(spelling, engine)
), opcodes AS (
    SELECT rank, profile, coalesce(pcore_idx, 0)::INTEGER AS core, engine AS spelling, opcode, tensor_instruction_type AS kind,
           count(*) AS instructions,
           count(*) FILTER (WHERE nki_source_location <> '' OR kernel_instruction_name <> '') AS nki_instructions,
           sum(coalesce(duration_ns, end_ts - start_ts)) AS instruction_ns, sum(evt_wait_time_ns) AS wait_ns,
           sum(raw_flops) AS raw_flops, sum(adjusted_flops) AS adjusted_flops, sum(hbm_read_bytes) AS hbm_read_bytes,
           sum(hbm_write_bytes) AS hbm_write_bytes
    FROM neuron.Instruction GROUP BY ALL
)
SELECT o.rank, o.profile, o.core, coalesce(n.engine, o.spelling) AS engine, sum(o.instructions)::BIGINT AS instructions,
       sum(o.nki_instructions)::BIGINT AS nki_instructions, sum(o.instruction_ns)::BIGINT AS instruction_ns,
       sum(o.wait_ns)::BIGINT AS wait_ns, sum(o.raw_flops)::BIGINT AS raw_flops, sum(o.adjusted_flops)::BIGINT AS adjusted_flops,
       sum(o.adjusted_flops) FILTER (WHERE o.opcode ILIKE '%matmul%')::BIGINT AS matmul_flops,
       sum(o.adjusted_flops) FILTER (WHERE o.opcode ILIKE '%matmul%' AND upper(o.kind) = 'TRANSPOSE')::BIGINT AS matmul_transpose_flops,
       sum(o.adjusted_flops) FILTER (WHERE upper(o.kind) = 'TRANSPOSE')::BIGINT AS transpose_flops,
       sum(o.hbm_read_bytes)::BIGINT AS hbm_read_bytes, sum(o.hbm_write_bytes)::BIGINT AS hbm_write_bytes
FROM opcodes AS o LEFT JOIN names AS n ON n.spelling = lower(o.spelling)
GROUP BY ALL
ORDER BY o.rank, o.profile, o.core, engine
