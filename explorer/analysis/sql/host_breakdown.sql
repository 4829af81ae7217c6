-- host_breakdown: what the host was doing in each step; the parts add up to wall_ns, exactly.
-- At each instant one class counts, the first that runs on any thread of: garbage collection, compilation, data loading,
-- input and output, op, runtime call, communication call, wait for a device, Python; else idle. A call inside an op
-- takes the op's place.
-- Needs: host_boundaries, step_windows, rank_extent, capture_pauses
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
WITH boundaries AS (
    SELECT rank, at_ns, blocking, working, 0 AS number, 0 AS recorded FROM host_boundaries
    UNION ALL BY NAME
    SELECT rank, unnest([start_ns, end_ns]) AS at_ns, unnest([number, -number]) AS number, 0 AS recorded FROM step_windows
    UNION ALL BY NAME
    SELECT rank, unnest([start_ns, end_ns]) AS at_ns, 0 AS number, unnest([1, -1]) AS recorded FROM rank_extent
    UNION ALL BY NAME
    SELECT rank, unnest([start_ns, end_ns]) AS at_ns, 0 AS number, unnest([-1, 1]) AS recorded FROM capture_pauses
), segments AS (
    SELECT rank, lead(at_ns) OVER sweep - at_ns AS length_ns, (sum(number) OVER sweep)::BIGINT AS number, sum(recorded) OVER sweep > 0 AS recorded,
           (sum(blocking) OVER sweep)::BIGINT AS blocking, (sum(working) OVER sweep)::BIGINT AS working
    FROM boundaries
    WINDOW sweep AS (PARTITION BY rank ORDER BY at_ns)
), classed AS (
    SELECT *, CASE WHEN blocking >= 35184372088832 THEN 'gc' WHEN blocking >= 1073741824 THEN 'compile' WHEN blocking >= 32768 THEN 'data' WHEN blocking >= 1 THEN 'io'
                WHEN working >= 281474976710656 THEN 'op' WHEN working >= 68719476736 THEN 'runtime' WHEN working >= 16777216 THEN 'communication' WHEN working >= 4096 THEN 'sync' WHEN working >= 1 THEN 'python' ELSE 'idle' END AS class
    FROM segments
    WHERE length_ns > 0 AND (recorded OR number > 0)
), totals AS (
    SELECT rank, number, sum(length_ns) AS wall_ns, sum(length_ns) FILTER (class = 'op') AS op_ns,
           sum(length_ns) FILTER (class = 'python') AS python_ns, sum(length_ns) FILTER (class = 'data') AS data_ns,
           sum(length_ns) FILTER (class = 'sync') AS sync_ns, sum(length_ns) FILTER (class = 'runtime') AS runtime_ns,
           sum(length_ns) FILTER (class = 'communication') AS communication_ns,
           sum(length_ns) FILTER (class = 'compile') AS compile_ns, sum(length_ns) FILTER (class = 'gc') AS gc_ns,
           sum(length_ns) FILTER (class = 'io') AS io_ns
    FROM classed
    GROUP BY rank, number
), whole AS (
    SELECT t.rank, t.number, s.step, s.complete, coalesce(s.wall_ns, t.wall_ns)::BIGINT AS wall_ns,
           coalesce(op_ns, 0)::BIGINT AS op_ns, coalesce(python_ns, 0)::BIGINT AS python_ns, coalesce(data_ns, 0)::BIGINT AS data_ns,
           coalesce(sync_ns, 0)::BIGINT AS sync_ns, coalesce(runtime_ns, 0)::BIGINT AS runtime_ns,
           coalesce(communication_ns, 0)::BIGINT AS communication_ns, coalesce(compile_ns, 0)::BIGINT AS compile_ns,
           coalesce(gc_ns, 0)::BIGINT AS gc_ns, coalesce(io_ns, 0)::BIGINT AS io_ns
    FROM totals AS t
    LEFT JOIN step_windows AS s ON s.rank = t.rank AND s.number = t.number
)
SELECT rank, step, complete, wall_ns, op_ns, python_ns, data_ns, sync_ns, runtime_ns, communication_ns, compile_ns, gc_ns, io_ns,
       wall_ns - op_ns - python_ns - data_ns - sync_ns - runtime_ns - communication_ns - compile_ns - gc_ns - io_ns AS idle_ns
FROM whole
ORDER BY rank, number = 0, number
