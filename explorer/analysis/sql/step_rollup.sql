-- step_rollup: one row per rank and step: wall time, the busiest device's work, what the host was doing, how much data came in.
-- Needs: breakdown, host_breakdown, events
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
--   input_rows BIGINT - How many tokens or samples the step worked on: the indices its embeddings looked up, else the rows of
--     the first matrix that was multiplied; null where shapes were not recorded
WITH shaped AS (
    -- Inputs as lists of sizes (Ascend writes shapes that are no JSON): the indices of an embedding, the left matrix of a product without its columns.
    SELECT rank, step, start_ns, event_id, name = 'aten::embedding' AS is_lookup,
           CASE name WHEN 'aten::embedding' THEN TRY_CAST(known->'$[1]' AS BIGINT[])
                     WHEN 'aten::addmm' THEN TRY_CAST(known->'$[1]' AS BIGINT[])[:-2]
                     ELSE TRY_CAST(known->'$[0]' AS BIGINT[])[:-2] END AS sizes
    FROM (SELECT *, TRY_CAST(shapes AS JSON) AS known FROM events)
    WHERE category = 'op' AND shapes IS NOT NULL
      AND name IN ('aten::embedding', 'aten::linear', 'aten::matmul', 'aten::mm', 'aten::addmm')
), inputs AS (
    SELECT rank, step, coalesce(max(list_product(sizes)) FILTER (is_lookup),
                                arg_min(list_product(sizes), (start_ns, event_id)) FILTER (len(sizes) > 0)) AS input_rows
    FROM shaped
    GROUP BY rank, step
), busiest AS (
    SELECT DISTINCT ON (rank, step) * FROM breakdown
    WHERE step IS NOT NULL OR NOT EXISTS (SELECT 1 FROM breakdown AS b WHERE b.rank = breakdown.rank AND b.step IS NOT NULL)
    ORDER BY rank, step, busy_ns DESC, device
)
SELECT b.rank, b.step, b.start_ns, b.wall_ns, coalesce(b.complete, true) AS complete, b.device, b.compute_ns,
       b.exposed_communication_ns, b.communication_ns, b.exposed_copy_ns, b.idle_ns AS device_idle_ns,
       coalesce(h.op_ns, 0) AS host_op_ns, coalesce(h.python_ns, 0) AS host_python_ns, coalesce(h.data_ns, 0) AS host_data_ns,
       coalesce(h.sync_ns, 0) AS host_sync_ns, coalesce(h.communication_ns, 0) AS host_communication_ns,
       coalesce(h.runtime_ns + h.compile_ns + h.gc_ns + h.io_ns, 0) AS host_other_ns, i.input_rows::BIGINT AS input_rows
FROM busiest AS b
LEFT JOIN host_breakdown AS h ON h.rank = b.rank AND h.step IS NOT DISTINCT FROM b.step
LEFT JOIN inputs AS i ON i.rank = b.rank AND i.step IS NOT DISTINCT FROM b.step
ORDER BY b.rank, b.start_ns
