-- step_rollup: one row per rank and step: wall time, the busiest device's work, and what the host was doing.
-- Needs: breakdown, host_breakdown
-- Columns
--   rank INTEGER - Process rank
--   step INTEGER - Step number; null for a rank without steps
--   start_ns BIGINT ns Start of the step, on the rank's own clock
--   wall_ns BIGINT ns Time of the step
--   complete BOOLEAN - False for a step cut by the edge of the capture
--   device VARCHAR - The device with the most work in the step
--   compute_ns BIGINT ns Time in which it computed
--   exposed_communication_ns BIGINT ns Time in which only communication ran
--   communication_ns BIGINT ns Time in which communication ran
--   exposed_copy_ns BIGINT ns Time in which only copies or fills ran
--   device_idle_ns BIGINT ns Time in which the device did nothing
--   host_op_ns BIGINT ns Host time in framework ops
--   host_python_ns BIGINT ns Host time in Python between them
--   host_data_ns BIGINT ns Host time fetching batches
--   host_sync_ns BIGINT ns Host time waiting for a device
--   host_communication_ns BIGINT ns Host time in communication calls
--   host_other_ns BIGINT ns Host time in runtime calls, compilation, collection, input and output
WITH busiest AS (
    SELECT DISTINCT ON (rank, step) * FROM breakdown
    WHERE step IS NOT NULL OR NOT EXISTS (SELECT 1 FROM breakdown AS b WHERE b.rank = breakdown.rank AND b.step IS NOT NULL)
    ORDER BY rank, step, busy_ns DESC, device
)
SELECT b.rank, b.step, b.start_ns, b.wall_ns, coalesce(b.complete, true) AS complete, b.device, b.compute_ns,
       b.exposed_communication_ns, b.communication_ns, b.exposed_copy_ns, b.idle_ns AS device_idle_ns,
       coalesce(h.op_ns, 0) AS host_op_ns, coalesce(h.python_ns, 0) AS host_python_ns, coalesce(h.data_ns, 0) AS host_data_ns,
       coalesce(h.sync_ns, 0) AS host_sync_ns, coalesce(h.communication_ns, 0) AS host_communication_ns,
       coalesce(h.runtime_ns + h.compile_ns + h.gc_ns + h.io_ns, 0) AS host_other_ns
FROM busiest AS b
LEFT JOIN host_breakdown AS h ON h.rank = b.rank AND h.step IS NOT DISTINCT FROM b.step
ORDER BY b.rank, b.start_ns
