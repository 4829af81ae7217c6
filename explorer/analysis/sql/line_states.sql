-- line_states: wall time of each thread at each source line, split into ops, other host activity and plain Python.
-- From host_states where the rank has them; the split counts time once however deeply events are nested.
-- Needs: host_states, events
-- Columns
--   rank INTEGER - Process rank
--   track_id INTEGER - Track of the thread
--   site_id BIGINT - The line being executed; null: no user line
--   host_ns BIGINT ns Time the thread spent executing this line itself
--   op_ns BIGINT ns Part of it inside framework ops
--   other_ns BIGINT ns Part of it outside ops, inside runtime calls, waits, compilation, collection or I/O
--   python_ns BIGINT ns The rest: Python itself. A data-loading range is a frame around the user's own Dataset code: its
--     time belongs to the lines executed in it
WITH boundaries AS (
    SELECT rank, track_id, start_ns AS at_ns, coalesce(site_id, 0) AS site, 1 AS state, 0 AS op, 0 AS other FROM host_states
    UNION ALL
    SELECT rank, track_id, start_ns + duration_ns, -coalesce(site_id, 0), -1, 0, 0 FROM host_states
    UNION ALL
    SELECT rank, track_id, start_ns, 0, 0, (category = 'op')::INT, (category <> 'op')::INT FROM events
    WHERE category IN ('op', 'runtime', 'sync', 'compile', 'gc', 'io', 'collective')
    UNION ALL
    SELECT rank, track_id, start_ns + duration_ns, 0, 0, -(category = 'op')::INT, -(category <> 'op')::INT FROM events
    WHERE category IN ('op', 'runtime', 'sync', 'compile', 'gc', 'io', 'collective')
), segments AS (
    SELECT rank, track_id, lead(at_ns) OVER sweep - at_ns AS length_ns, (sum(site) OVER sweep)::BIGINT AS site,
           sum(state) OVER sweep > 0 AS state, sum(op) OVER sweep > 0 AS op, sum(other) OVER sweep > 0 AS other
    FROM boundaries
    WINDOW sweep AS (PARTITION BY rank, track_id ORDER BY at_ns)
)
SELECT rank, track_id, nullif(site, 0) AS site_id, sum(length_ns)::BIGINT AS host_ns,
       coalesce(sum(length_ns) FILTER (op), 0)::BIGINT AS op_ns,
       coalesce(sum(length_ns) FILTER (other AND NOT op), 0)::BIGINT AS other_ns,
       coalesce(sum(length_ns) FILTER (NOT op AND NOT other), 0)::BIGINT AS python_ns
FROM segments
WHERE state AND length_ns > 0
GROUP BY rank, track_id, site
