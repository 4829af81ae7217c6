-- kernels: device work by name: how often, how long, how much of the device's work.
-- Durations are plain sums: kernels that overlap count twice here; `breakdown` holds the unions.
-- Needs: device_events
-- Columns
--   name VARCHAR - Name as recorded
--   category VARCHAR - kernel, copy, fill, collective, instruction or dma
--   device VARCHAR - Device as text
--   calls BIGINT - How many
--   total_ns BIGINT ns Sum of durations
--   mean_ns BIGINT ns Mean duration, rounded
--   min_ns BIGINT ns Shortest
--   p50_ns BIGINT ns Median
--   p95_ns BIGINT ns 95th percentile (nearest rank)
--   max_ns BIGINT ns Longest
--   share DOUBLE - Part of the summed device time of this device over all ranks, 0 to 1
SELECT name, category, device, count(*) AS calls, sum(duration_ns)::BIGINT AS total_ns, round(avg(duration_ns))::BIGINT AS mean_ns,
       min(duration_ns) AS min_ns, quantile_disc(duration_ns, 0.5) AS p50_ns, quantile_disc(duration_ns, 0.95) AS p95_ns,
       max(duration_ns) AS max_ns,
       coalesce(sum(duration_ns) / nullif(sum(sum(duration_ns)) OVER (PARTITION BY device), 0), 0.0) AS share
FROM device_events
GROUP BY name, category, device
ORDER BY total_ns DESC, name, category, device
