-- engines: how busy each engine of each physical core was: interval union, so that overlapping instructions count once.
-- Needs: neuron.Instruction, neuron_busy
-- Columns
--   rank INTEGER - Process rank
--   profile VARCHAR - Device profile
--   device VARCHAR - Logical core as a device
--   core INTEGER - Physical core within the logical one
--   engine VARCHAR - Tensor, Vector, Scalar, GpSimd or Sync
--   window_ns BIGINT ns Length of the profile: first start to last end of any engine, DMA or collective
--   active_ns BIGINT ns Time in which at least one instruction ran
--   active_share DOUBLE share active_ns of window_ns
--   idle_ns BIGINT ns window_ns less active_ns
--   instructions BIGINT count Instructions
--   instruction_ns BIGINT ns Sum of durations; more than active_ns where instructions overlap
--   wait_ns BIGINT ns Sum of evt_wait_time_ns; counts one wait several times, good for ranking only
--   raw_flops BIGINT flop Sum of raw_flops
--   hbm_bytes BIGINT bytes HBM bytes read and written by instructions
WITH spans AS (
    SELECT rank, profile, max(start_ns + duration_ns) - min(start_ns) AS window_ns
    FROM neuron_busy WHERE lane <> 'throttle' GROUP BY rank, profile
), busy AS (
    SELECT rank, profile, device, core, lane AS engine, sum(duration_ns)::BIGINT AS active_ns
    FROM neuron_busy WHERE lane IN ('Tensor', 'Vector', 'Scalar', 'GpSimd', 'Sync') GROUP BY ALL
), names AS (
    SELECT * FROM (VALUES ('tensor', 'Tensor'), ('pe', 'Tensor'), ('vector', 'Vector'), ('dve', 'Vector'),
        ('scalar', 'Scalar'), ('act', 'Scalar'), ('activation', 'Scalar'), ('gpsimd', 'GpSimd'), ('pool', 'GpSimd'),
        ('sync', 'Sync'), ('sp', 'Sync')) AS n(spelling, engine)
), counted AS (
    SELECT rank, profile, coalesce(pcore_idx, 0)::INTEGER AS core, engine AS spelling, count(*) AS instructions,
           sum(coalesce(duration_ns, end_ts - start_ts)) AS instruction_ns, sum(evt_wait_time_ns) AS wait_ns,
           sum(raw_flops) AS raw_flops, sum(coalesce(hbm_read_bytes, 0) + coalesce(hbm_write_bytes, 0)) AS hbm_bytes
    FROM neuron.Instruction GROUP BY ALL
), sums AS (
    SELECT c.rank, c.profile, c.core, coalesce(n.engine, c.spelling) AS engine, sum(c.instructions)::BIGINT AS instructions,
           sum(c.instruction_ns)::BIGINT AS instruction_ns, sum(c.wait_ns)::BIGINT AS wait_ns,
           sum(c.raw_flops)::BIGINT AS raw_flops, sum(c.hbm_bytes)::BIGINT AS hbm_bytes
    FROM counted AS c LEFT JOIN names AS n ON n.spelling = lower(c.spelling)
    GROUP BY ALL
)
SELECT b.rank, b.profile, b.device, b.core, b.engine, w.window_ns, b.active_ns, b.active_ns / w.window_ns AS active_share,
       w.window_ns - b.active_ns AS idle_ns, s.instructions, s.instruction_ns, s.wait_ns, s.raw_flops, s.hbm_bytes
FROM busy AS b JOIN spans AS w USING (rank, profile) LEFT JOIN sums AS s USING (rank, profile, core, engine)
ORDER BY b.rank, b.device, b.profile, b.core, b.active_ns DESC
