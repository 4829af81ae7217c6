-- run_health: what is missing, broken, repaired or doubtful in the run: what the collector said, and what the analysis sees.
-- Needs: health, steps, events, device_tracks, tracks
-- Columns
--   rank INTEGER - Process rank
--   kind VARCHAR - Short stable name
--   severity VARCHAR - info, warning or error
--   count BIGINT - How many rows or events are affected
--   message VARCHAR - What happened and why
--   remedy VARCHAR - What to do
--   affects VARCHAR - Comma-separated answers that are less certain for it
WITH kinds AS (
    SELECT e.rank, count(*) AS device_events, count(*) FILTER (launch_id IS NULL) AS unlaunched,
           count(*) FILTER (site_id IS NULL) AS unlined, count(*) FILTER (category IN ('instruction', 'dma')) AS engine_events
    FROM events AS e
    JOIN device_tracks USING (rank, track_id)
    WHERE category IN ('kernel', 'copy', 'fill', 'collective', 'instruction', 'dma')
    GROUP BY e.rank
), ops AS (
    SELECT rank, count(*) AS ops, count(*) FILTER (site_id IS NULL) AS unlined, count(shapes) AS shaped
    FROM events WHERE category = 'op' GROUP BY rank
), overlapping AS (
    SELECT rank, track_id, sum((start_ns < previous_end)::INT) AS overlap_count
    FROM (
        SELECT e.rank, e.track_id, start_ns,
               max(start_ns + duration_ns) OVER (PARTITION BY e.rank, e.track_id ORDER BY start_ns, event_id
                   ROWS BETWEEN UNBOUNDED PRECEDING AND 1 PRECEDING) AS previous_end
        FROM events AS e
        JOIN device_tracks AS d ON d.rank = e.rank AND d.track_id = e.track_id
        WHERE category IN ('kernel', 'copy', 'fill', 'collective', 'instruction', 'dma'))
    GROUP BY rank, track_id
), launching AS (
    -- Names of calls that launched something in this run; another call of such a name should have too.
    SELECT DISTINCT h.rank, h.name
    FROM events AS e
    JOIN events AS h ON h.rank = e.rank AND h.event_id = e.launch_id
    WHERE h.category = 'runtime' AND h.name ILIKE '%launch%'
), calls AS (
    SELECT h.rank, count(*) AS launches, count(*) FILTER (k.launch_id IS NULL) AS idle_launches
    FROM events AS h
    JOIN launching AS l ON l.rank = h.rank AND l.name = h.name
    LEFT JOIN (SELECT DISTINCT rank, launch_id FROM events WHERE launch_id IS NOT NULL) AS k ON k.rank = h.rank AND k.launch_id = h.event_id
    WHERE h.category = 'runtime'
    GROUP BY h.rank
), early_work AS (
    SELECT e.rank, count(*) AS early
    FROM events AS e
    JOIN events AS h ON h.rank = e.rank AND h.event_id = e.launch_id
    WHERE e.start_ns < h.start_ns
    GROUP BY e.rank
), seen AS (
    SELECT rank, 'unlinked_kernels' AS kind, 'warning' AS severity, unlaunched AS count,
           unlaunched || ' of ' || device_events || ' device events have no launching call in the trace' AS message,
           CASE WHEN rank IN (SELECT rank FROM events WHERE category IN ('runtime', 'op'))
                THEN 'Record from before the first launch, with runtime calls on'
                WHEN engine_events > 0 THEN 'The run holds device work only: add a system profile, or record with neuron_profile(device_profile=True)'
                ELSE 'The run holds device work only: record the host beside it' END AS remedy, 'lines, launches, gaps, critical-path' AS affects
    FROM kinds WHERE unlaunched > 0
    UNION ALL
    SELECT rank, 'device_events_without_line', CASE WHEN unlined * 10 > device_events THEN 'warning' ELSE 'info' END, unlined,
           unlined || ' of ' || device_events || ' device events have no source line',
           CASE WHEN engine_events > 0
                THEN 'Compile with XLA_IR_DEBUG=1 XLA_HLO_DEBUG=1 NEURON_FRAMEWORK_DEBUG=1 (kernels: NKI_DEBUG_INFO=1)'
                ELSE 'Record with neuron_profile, or with_stack=True in torch.profiler' END, 'lines'
    FROM kinds WHERE unlined > 0
    UNION ALL
    SELECT rank, 'ops_without_line', CASE WHEN unlined * 10 > ops THEN 'warning' ELSE 'info' END, unlined,
           unlined || ' of ' || ops || ' ops have no source line',
           'Record with neuron_profile, or with_stack=True in torch.profiler', 'lines'
    FROM ops WHERE unlined > 0
    UNION ALL
    SELECT rank, 'no_shapes', 'info', ops, 'No op carries input shapes', 'Record with record_shapes', 'roofline'
    FROM ops WHERE shaped = 0
    UNION ALL
    SELECT rank, 'launches_without_kernel', CASE WHEN idle_launches * 10 > launches THEN 'warning' ELSE 'info' END, idle_launches,
           idle_launches || ' of ' || launches || ' launching calls have no device work in the trace',
           'Stop recording only after a synchronisation, and look for dropped device records', 'launches, gaps, critical-path'
    FROM calls WHERE idle_launches > 0
    UNION ALL
    SELECT rank, 'device_work_before_its_launch', 'warning', early,
           early || ' device events begin before the call that launched them: the clocks of host and device disagree',
           NULL, 'launches, gaps, critical-path'
    FROM early_work WHERE early > 0
    UNION ALL
    SELECT rank, 'overlaps_on_stream', 'info', sum(overlap_count)::BIGINT,
           sum(overlap_count)::BIGINT || ' device events begin before the previous one of their stream has ended; times are unions',
           NULL, 'kernels'
    FROM overlapping GROUP BY rank HAVING sum(overlap_count) > 0
    UNION ALL
    SELECT rank, 'incomplete_steps', 'info', count(*),
           count(*) || ' steps are cut by the edge of the recording and left out of averages', NULL, 'steps'
    FROM steps WHERE NOT complete GROUP BY rank
    UNION ALL
    SELECT rank, 'no_steps', 'info', 1, 'The rank holds no steps; the whole recording counts as one',
           'Call prof.step() at the end of every iteration', 'steps, breakdown, bottlenecks'
    FROM (SELECT DISTINCT rank FROM tracks) WHERE rank NOT IN (SELECT rank FROM steps)
)
SELECT rank, kind, severity, count, message, remedy, affects
FROM (
    SELECT rank, kind, severity, count, message, remedy, affects FROM health
    UNION ALL BY NAME
    SELECT * FROM seen WHERE (rank, kind) NOT IN (SELECT (rank, kind) FROM health)
)
ORDER BY kind <> 'neuron_warning', CASE severity WHEN 'error' THEN 0 WHEN 'warning' THEN 1 ELSE 2 END, rank, kind
