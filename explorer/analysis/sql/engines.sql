-- engines: how busy each engine of each physical core was: interval union, so that overlapping instructions count once.
-- Needs: neuron_work, neuron_lane_time
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
    SELECT rank, profile, max(end_ns) - min(start_ns) AS window_ns
    FROM neuron_lane_time WHERE lane <> 'throttle' GROUP BY rank, profile
)
SELECT b.rank, b.profile, b.device, b.core, b.lane AS engine, w.window_ns, b.busy_ns AS active_ns, b.busy_ns / w.window_ns AS active_share,
       w.window_ns - b.busy_ns AS idle_ns, s.instructions, s.instruction_ns, s.wait_ns, s.raw_flops,
       coalesce(s.hbm_read_bytes, 0) + coalesce(s.hbm_write_bytes, 0) AS hbm_bytes
FROM neuron_lane_time AS b JOIN spans AS w USING (rank, profile)
LEFT JOIN neuron_work AS s ON s.rank = b.rank AND s.profile = b.profile AND s.core = b.core AND s.engine = b.lane
WHERE b.lane IN ('Tensor', 'Vector', 'Scalar', 'GpSimd', 'Sync')
ORDER BY b.rank, b.device, b.profile, b.core, active_ns DESC
