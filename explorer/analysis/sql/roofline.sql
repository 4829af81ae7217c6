-- roofline: achieved against attainable rates by op, shapes and dtype.
-- attainable is the roofline of Williams, Waterman and Patterson (2009): the lesser of the compute peak and intensity times
-- memory bandwidth. Above 100 % the model or the peak is wrong, or the data stayed in a cache: then efficiency is null and
-- `problem` says so.
-- Needs: op_roofline
-- Columns
--   name VARCHAR - Op name
--   family VARCHAR - Op family
--   shapes VARCHAR - JSON list of input shapes
--   dtype VARCHAR - dtype it computes in
--   device VARCHAR - Device that did it
--   calls BIGINT - How many
--   time_ns BIGINT ns Time of all calls
--   flops BIGINT flop Operations of one call
--   size_bytes BIGINT bytes Bytes that must move at least in one call
--   formula VARCHAR - How the operations were counted
--   intensity DOUBLE flop/byte Operations per byte
--   achieved_flops DOUBLE flop/s Operations per second
--   achieved_bandwidth DOUBLE bytes/s Bytes per second, of those that must move
--   attainable_flops DOUBLE flop/s What the device allows at this intensity
--   bound VARCHAR - compute or memory: the side of the roofline; null where the peaks are not known
--   efficiency DOUBLE - Least time over time, 0 to 1; null where the peaks are not known or it would be above 1
--   lost_ns BIGINT ns Time above the least time, all calls; null where the peaks are not known
--   problem VARCHAR - Why there is no efficiency
WITH grouped AS (
    SELECT name, family, shapes, dtype, device, count(*) AS calls, sum(time_ns)::BIGINT AS time_ns, any_value(flops) AS flops,
           any_value(size_bytes) AS size_bytes, any_value(formula) AS formula, any_value(peak_flops) AS peak_flops,
           any_value(memory_bandwidth) AS memory_bandwidth, sum(attainable_ns) AS attainable_ns
    FROM op_roofline
    GROUP BY name, family, shapes, dtype, device, flops, size_bytes
)
SELECT name, family, shapes, dtype, device, calls, time_ns, flops, size_bytes, formula, flops / nullif(size_bytes, 0) AS intensity,
       flops * calls / time_ns * 1e9 AS achieved_flops, size_bytes * calls / time_ns * 1e9 AS achieved_bandwidth,
       least(peak_flops, flops / nullif(size_bytes, 0) * memory_bandwidth) AS attainable_flops,
       CASE WHEN attainable_ns IS NULL THEN NULL WHEN flops / peak_flops >= size_bytes / memory_bandwidth THEN 'compute' ELSE 'memory' END AS bound,
       CASE WHEN attainable_ns <= time_ns THEN attainable_ns / time_ns END AS efficiency,
       CASE WHEN attainable_ns IS NOT NULL THEN greatest(time_ns - attainable_ns, 0)::BIGINT END AS lost_ns,
       CASE WHEN attainable_ns IS NULL THEN 'the peaks of this device and dtype are not known'
            WHEN attainable_ns > time_ns THEN 'above 100 % (' || round(100 * attainable_ns / time_ns)::INT || ' %): cached data, an algorithm with fewer operations (Winograd, FFT), or the model is wrong'
       END AS problem
FROM grouped
ORDER BY time_ns DESC, name, shapes
