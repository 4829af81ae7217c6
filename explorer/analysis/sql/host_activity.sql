-- host_activity: what the busiest thread of each rank did outside framework ops, by step and category: waiting for a
-- device, data loading, files, garbage collection, compilation, runtime calls.
-- Needs: events, tracks
-- Columns
--   rank INTEGER - Process rank
--   step INTEGER - Step; null outside steps
--   category VARCHAR - sync, data, io, gc, compile, runtime or collective
--   duration_ns BIGINT ns Time in it, what it encloses left out
WITH busiest AS (
    SELECT rank, arg_max(track_id, ops) AS track_id
    FROM (
        SELECT e.rank, e.track_id, sum(e.self_ns) AS ops
        FROM events AS e
        JOIN tracks AS t ON t.rank = e.rank AND t.track_id = e.track_id AND t.kind = 'thread'
        WHERE e.category = 'op'
        GROUP BY e.rank, e.track_id
    )
    GROUP BY rank
)
SELECT e.rank, e.step, e.category, sum(e.self_ns)::BIGINT AS duration_ns
FROM events AS e
JOIN busiest AS b ON b.rank = e.rank AND b.track_id = e.track_id
LEFT JOIN events AS p ON p.rank = e.rank AND p.event_id = e.parent_id
WHERE e.category IN ('sync', 'data', 'io', 'gc', 'compile', 'runtime', 'collective') AND p.category IS DISTINCT FROM 'op'
GROUP BY e.rank, e.step, e.category
