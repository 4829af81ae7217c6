-- mfu: model FLOPs utilisation per rank, device and step: operations of the modelled ops over what the device could do in
-- the step's wall time at the peak of the dtype with the most matrix operations (Chowdhery et al., PaLM, 2022).
-- Only steps whose ops carry shapes are listed; mfu is a lower bound where some ops have no model.
-- Needs: op_roofline, step_windows, rank_extent
-- Columns
--   rank INTEGER - Process rank
--   device VARCHAR - Device
--   step INTEGER - Step; null for a rank without steps
--   wall_ns BIGINT ns Time of the step
--   flops BIGINT flop Operations of the modelled ops
--   matrix_flops BIGINT flop Those of matrix products, convolutions and attention
--   dtype VARCHAR - dtype with the most matrix operations
--   peak_flops DOUBLE flop/s Peak of the device for it
--   achieved_flops DOUBLE flop/s Operations per second of wall time
--   mfu DOUBLE - Part of the peak, 0 to 1; null where the peak is not known or it would be above 1
WITH windows AS (
    SELECT rank, step, wall_ns FROM step_windows WHERE complete
    UNION ALL
    SELECT rank, NULL, end_ns - start_ns FROM rank_extent WHERE rank NOT IN (SELECT rank FROM step_windows)
), by_dtype AS (
    SELECT rank, device, step, dtype, sum(flops) AS flops, max(peak_flops) AS peak_flops,
           coalesce(sum(flops) FILTER (family IN ('matmul', 'convolution', 'attention')), 0) AS matrix_flops
    FROM op_roofline
    GROUP BY rank, device, step, dtype
), summed AS (
    SELECT rank, device, step, sum(flops) AS flops, sum(matrix_flops) AS matrix_flops, arg_max(dtype, matrix_flops) AS dtype,
           arg_max(peak_flops, matrix_flops) AS peak_flops
    FROM by_dtype
    GROUP BY rank, device, step
)
SELECT s.rank, s.device, s.step, w.wall_ns, s.flops::BIGINT AS flops, s.matrix_flops::BIGINT AS matrix_flops, s.dtype, s.peak_flops,
       s.flops / w.wall_ns * 1e9 AS achieved_flops,
       CASE WHEN s.flops / w.wall_ns * 1e9 <= s.peak_flops THEN s.flops / w.wall_ns * 1e9 / s.peak_flops END AS mfu
FROM summed AS s
JOIN windows AS w ON w.rank = s.rank AND w.step IS NOT DISTINCT FROM s.step
ORDER BY s.rank, s.device, s.step
