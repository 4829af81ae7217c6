-- line_coverage: how much of the op time and of the device time has a source line, by phase, how exactly, and why the rest has none.
-- A row with phase null holds all phases of its kind of work. The five times exact_ns to none_ns add up to time_ns.
-- Needs: events, tracks, device_tracks, host_states
-- Columns
--   rank INTEGER - Process rank
--   work VARCHAR - 'host' for framework ops (own time), 'device' for work on devices (duration)
--   phase VARCHAR - forward, backward, optimizer, data ...; 'other' where unknown; null for all together
--   time_ns BIGINT ns Time of the work
--   exact_ns BIGINT ns Part whose one line is known
--   shared_ns BIGINT ns Part of work that computes several lines, all known (event_sites)
--   coarse_ns BIGINT ns Part whose function alone is known (hot loops, graphs compiled before recording)
--   inferred_ns BIGINT ns Part whose line follows from order or time, not from an id
--   none_ns BIGINT ns Part without a line
--   unseen_ns BIGINT ns Part of none_ns on threads of which no line was recorded, or, on a device, whose launch is unknown
--   outside_ns BIGINT ns The rest of none_ns: while no recorded code was running (libraries alone)
--   exact_share DOUBLE - (exact_ns + shared_ns) / time_ns, 0 to 1
--   none_share DOUBLE - none_ns / time_ns, 0 to 1
WITH lined AS (
    SELECT DISTINCT rank, track_id FROM host_states WHERE site_id IS NOT NULL
    UNION
    SELECT DISTINCT rank, track_id FROM events WHERE site_id IS NOT NULL
), work AS (
    SELECT e.rank, CASE WHEN d.track_id IS NULL THEN 'host' ELSE 'device' END AS work, coalesce(e.phase, 'other') AS phase,
           CASE WHEN d.track_id IS NULL THEN e.self_ns ELSE e.duration_ns END AS time_ns,
           CASE WHEN e.site_id IS NULL THEN 'none' ELSE coalesce(e.precision, 'inferred') END AS known,
           CASE WHEN d.track_id IS NULL THEN l.track_id IS NULL ELSE e.launch_id IS NULL AND e.op_id IS NULL END AS unseen
    FROM events AS e
    LEFT JOIN device_tracks AS d ON d.rank = e.rank AND d.track_id = e.track_id
    LEFT JOIN lined AS l ON l.rank = e.rank AND l.track_id = e.track_id
    WHERE (d.track_id IS NULL AND e.category = 'op')
       OR (d.track_id IS NOT NULL AND e.category IN ('kernel', 'copy', 'fill', 'collective', 'instruction', 'dma'))
), sums AS (
    SELECT rank, work, phase, sum(time_ns) AS time_ns,
           coalesce(sum(time_ns) FILTER (known = 'exact'), 0) AS exact_ns,
           coalesce(sum(time_ns) FILTER (known = 'shared'), 0) AS shared_ns,
           coalesce(sum(time_ns) FILTER (known = 'coarse'), 0) AS coarse_ns,
           coalesce(sum(time_ns) FILTER (known = 'inferred'), 0) AS inferred_ns,
           coalesce(sum(time_ns) FILTER (known = 'none'), 0) AS none_ns,
           coalesce(sum(time_ns) FILTER (known = 'none' AND unseen), 0) AS unseen_ns
    FROM work
    GROUP BY GROUPING SETS ((rank, work, phase), (rank, work))
)
SELECT rank, work, phase, time_ns::BIGINT AS time_ns, exact_ns::BIGINT AS exact_ns, shared_ns::BIGINT AS shared_ns,
       coarse_ns::BIGINT AS coarse_ns, inferred_ns::BIGINT AS inferred_ns, none_ns::BIGINT AS none_ns,
       unseen_ns::BIGINT AS unseen_ns, (none_ns - unseen_ns)::BIGINT AS outside_ns,
       coalesce((exact_ns + shared_ns) / nullif(time_ns, 0), 0.0)::DOUBLE AS exact_share,
       coalesce(none_ns / nullif(time_ns, 0), 0.0)::DOUBLE AS none_share
FROM sums
ORDER BY rank, work DESC, phase NULLS FIRST
