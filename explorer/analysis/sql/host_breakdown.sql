-- host_breakdown: what the host was doing in each step; the parts add up to wall_ns, exactly.
-- At each instant one class counts, the first that runs on any thread of: garbage collection, compilation, data loading,
-- input and output, op, runtime call, communication call, wait for a device, Python; else idle. A call inside an op
-- takes the op's place.
-- Needs: host_time, step_windows
-- Columns
--   rank INTEGER - Process rank
--   step INTEGER - Step number; null for the time outside steps
--   complete BOOLEAN - False for a step cut by the edge of the capture; null outside steps
--   wall_ns BIGINT ns Time of the window, capture pauses left out
--   op_ns BIGINT ns Framework ops, without the calls and waits inside them
--   python_ns BIGINT ns Python between them
--   data_ns BIGINT ns Fetching the next batch
--   sync_ns BIGINT ns Waiting for a device
--   runtime_ns BIGINT ns Launches and other calls into the device runtime
--   communication_ns BIGINT ns Communication calls
--   compile_ns BIGINT ns Compilation
--   gc_ns BIGINT ns Garbage collection
--   io_ns BIGINT ns File, socket and pipe input and output
--   idle_ns BIGINT ns No recorded activity
WITH whole AS (
    SELECT t.*, s.step, s.complete, coalesce(s.wall_ns, t.length_ns) AS wall_ns
    FROM host_time AS t
    LEFT JOIN step_windows AS s ON s.rank = t.rank AND s.number = t.number
)
SELECT rank, step, complete, wall_ns, op_ns, python_ns, data_ns, sync_ns, runtime_ns, communication_ns, compile_ns, gc_ns, io_ns,
       wall_ns - op_ns - python_ns - data_ns - sync_ns - runtime_ns - communication_ns - compile_ns - gc_ns - io_ns AS idle_ns
FROM whole
ORDER BY rank, number = 0, number
