-- steps_summary: each step of each rank: its time, its ops, its device work. A rank without steps is one step.
-- Needs: step_windows, rank_extent, events, breakdown, device_tracks
-- Columns
--   rank INTEGER - Process rank
--   step INTEGER - Step number; null for a rank without steps
--   start_ns BIGINT ns Start of the step
--   wall_ns BIGINT ns Time of the step, capture pauses left out
--   complete BOOLEAN - False for a step cut by the edge of the capture
--   phase VARCHAR - train, evaluation, prefill, decode or null
--   device VARCHAR - The device with the most work in the step
--   busy_ns BIGINT ns Time in which that device worked
--   idle_ns BIGINT ns Time in which it did not
--   ops BIGINT - Framework ops that carry this step
--   kernels BIGINT - Device events that carry this step
WITH counted AS (
    SELECT e.rank, e.step, count(*) FILTER (category = 'op') AS ops,
           count(*) FILTER (d.track_id IS NOT NULL
               AND category IN ('kernel', 'copy', 'fill', 'collective', 'instruction', 'dma')) AS kernels
    FROM events AS e
    LEFT JOIN device_tracks AS d USING (rank, track_id)
    GROUP BY e.rank, e.step
), busiest AS (
    SELECT DISTINCT ON (rank, step) * FROM breakdown ORDER BY rank, step, busy_ns DESC, device
), windows AS (
    SELECT rank, step, start_ns, wall_ns, complete, phase FROM step_windows
    UNION ALL
    SELECT rank, NULL, start_ns, end_ns - start_ns, true, NULL
    FROM rank_extent WHERE rank NOT IN (SELECT rank FROM step_windows)
)
SELECT w.rank, w.step, w.start_ns, w.wall_ns, w.complete, w.phase, b.device, coalesce(b.busy_ns, 0) AS busy_ns,
       coalesce(b.idle_ns, w.wall_ns) AS idle_ns, coalesce(c.ops, 0) AS ops, coalesce(c.kernels, 0) AS kernels
FROM windows AS w
LEFT JOIN busiest AS b ON b.rank = w.rank AND b.step IS NOT DISTINCT FROM w.step
LEFT JOIN counted AS c ON c.rank = w.rank AND c.step IS NOT DISTINCT FROM w.step
ORDER BY w.rank, w.start_ns
