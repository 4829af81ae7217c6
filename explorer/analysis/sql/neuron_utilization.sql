-- neuron_utilization: MFU, HFU, MBU and arithmetic intensity of each profile, by the schema reference's formulas.
-- Flops and bytes come from Summary where it has them, else from the instructions; the peak is that of all physical cores
-- that ran, bandwidth that of the profile's Metadata.
-- Needs: neuron_work, neuron_lane_time, neuron.Summary, neuron.Metadata
-- Columns
--   rank INTEGER - Process rank
--   profile VARCHAR - Device profile
--   device VARCHAR - Logical core as a device
--   cores BIGINT count Physical cores that ran instructions
--   total_ns BIGINT ns Length: Summary.total_time, else first start to last end
--   active_ns BIGINT ns First start to last end of any engine, DMA or collective
--   hardware_flops DOUBLE flop All matrix work
--   transpose_flops DOUBLE flop Of it, transposes
--   model_flops DOUBLE flop Matrix work that the model's graph asks for; null where the profile does not say (kernels)
--   hbm_read_bytes DOUBLE bytes Read from HBM
--   hbm_write_bytes DOUBLE bytes Written to HBM
--   intensity DOUBLE flop/byte Matrix flops without transposes per HBM byte
--   ridge DOUBLE flop/byte Intensity above which compute is the limit
--   side VARCHAR - compute or memory: which side of the ridge
--   hfu DOUBLE share Hardware flops utilisation
--   mfu DOUBLE share Model flops utilisation
--   mfu_instructions DOUBLE share The same from instructions: hardware flops without transposes
--   mfu_max DOUBLE share MFU that HBM bandwidth allows at this intensity
--   mbu DOUBLE share HBM bandwidth utilisation
--   useful_share DOUBLE share Model flops of hardware flops
WITH spans AS (
    SELECT rank, profile, any_value(device) AS device, max(end_ns) - min(start_ns) AS active_ns
    FROM neuron_lane_time WHERE lane <> 'throttle' GROUP BY rank, profile
), work AS (
    SELECT rank, profile, count(DISTINCT core) AS cores, sum(adjusted_flops)::DOUBLE AS flops,
           sum(transpose_flops)::DOUBLE AS transposes, sum(hbm_read_bytes)::DOUBLE AS read_bytes,
           sum(hbm_write_bytes)::DOUBLE AS write_bytes
    FROM neuron_work GROUP BY rank, profile
), said AS (
    SELECT rank, profile, max(total_time) AS total_s, max(hardware_flops)::DOUBLE AS flops,
           max(CASE WHEN isnan(transpose_flops::DOUBLE) THEN 0 ELSE transpose_flops END)::DOUBLE AS transposes,
           nullif(max(model_flops), 0)::DOUBLE AS model, max(hbm_read_bytes)::DOUBLE AS read_bytes,
           max(hbm_write_bytes)::DOUBLE AS write_bytes
    FROM neuron.Summary GROUP BY rank, profile
), facts AS (
    SELECT rank, profile, max(hbm_ddr_bandwidth) AS bandwidth,
           max(tensor_engine_num_rows * tensor_engine_num_cols * 2 * tensor_engine_clock_freq) * 1e9 AS peak
    FROM neuron.Metadata GROUP BY rank, profile
), joined AS (
    SELECT s.rank, s.profile, s.device, coalesce(w.cores, 1) AS cores,
           coalesce(round(1e9 * d.total_s), s.active_ns)::BIGINT AS total_ns, s.active_ns,
           coalesce(d.flops, w.flops) AS hardware_flops, coalesce(d.transposes, w.transposes, 0) AS transpose_flops,
           d.model AS model_flops, coalesce(d.read_bytes, w.read_bytes) AS hbm_read_bytes,
           coalesce(d.write_bytes, w.write_bytes) AS hbm_write_bytes, f.bandwidth, f.peak
    FROM spans AS s LEFT JOIN work AS w USING (rank, profile) LEFT JOIN said AS d USING (rank, profile)
    LEFT JOIN facts AS f USING (rank, profile)
), rated AS (
    SELECT *, (hardware_flops - transpose_flops) / nullif(hbm_read_bytes + hbm_write_bytes, 0) AS intensity,
           peak / nullif(bandwidth, 0) AS ridge, nullif(peak * cores * total_ns / 1e9, 0) AS most_flops
    FROM joined
)
SELECT rank, profile, device, cores, total_ns, active_ns, hardware_flops, transpose_flops, model_flops, hbm_read_bytes,
       hbm_write_bytes, intensity, ridge, CASE WHEN intensity >= ridge THEN 'compute' WHEN intensity < ridge THEN 'memory' END AS side,
       hardware_flops / most_flops AS hfu, model_flops / most_flops AS mfu,
       (hardware_flops - transpose_flops) / most_flops AS mfu_instructions, least(1, intensity / ridge) AS mfu_max,
       (hbm_read_bytes + hbm_write_bytes) / nullif(bandwidth * total_ns / 1e9, 0) AS mbu,
       model_flops / nullif(hardware_flops, 0) AS useful_share
FROM rated
ORDER BY rank, device, profile
