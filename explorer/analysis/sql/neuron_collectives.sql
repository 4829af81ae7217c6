-- neuron_collectives: each collective on the device: bandwidth, trigger delay, how it compares with its like.
-- Needs: neuron.CcOp
-- Columns
--   rank INTEGER - Process rank
--   profile VARCHAR - Device profile
--   operation VARCHAR - As the profile names it
--   algorithm VARCHAR - ring, mesh ...
--   dtype VARCHAR - Element type
--   start_ts BIGINT ns Start on the device's clock
--   duration_ns BIGINT ns Duration
--   size_bytes BIGINT bytes Input size
--   bus_bandwidth DOUBLE bytes/s As the profile gives it
--   trigger_delay_ns BIGINT ns From trigger to start
--   trigger_engine VARCHAR - Engine that triggered it
--   like BIGINT count Collectives of the same operation, size and group in this profile
--   median_ns DOUBLE ns Their median duration
--   over_median DOUBLE ratio duration_ns of median_ns: outliers are well above 1
SELECT rank, profile, operation, algorithm, dtype, start_ts, coalesce(duration_ns, end_ts - start_ts) AS duration_ns,
       input_size AS size_bytes, bus_bandwidth, cc_trigger_start_delay AS trigger_delay_ns, trigger_engine,
       count(*) OVER alike AS "like", median(coalesce(duration_ns, end_ts - start_ts)) OVER alike AS median_ns,
       coalesce(duration_ns, end_ts - start_ts) / nullif(median(coalesce(duration_ns, end_ts - start_ts)) OVER alike, 0) AS over_median
FROM neuron.CcOp
WINDOW alike AS (PARTITION BY rank, profile, operation, input_size, replica_group)
ORDER BY rank, profile, start_ts
