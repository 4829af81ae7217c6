-- steps_summary: each step of each rank: its time, its ops, its device work, what recording it cost. A rank without steps
-- is one step.
-- Needs: step_windows, rank_extent, capture_pauses, events, breakdown, device_tracks, host_states, rank_info
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
--   recording_ns BIGINT ns What recording cost the host in the step: ops, lines, library and module calls times their measured cost
--   corrected_wall_ns BIGINT ns wall_ns without it; with a device at most its idle time is taken off, as recording under device
--     work costs nothing; never less than a tenth of wall_ns
WITH counted AS (
    SELECT e.rank, e.step, count(*) FILTER (category = 'op') AS ops,
           count(*) FILTER (d.track_id IS NOT NULL
               AND category IN ('kernel', 'copy', 'fill', 'collective', 'instruction', 'dma')) AS kernels
    FROM events AS e
    LEFT JOIN device_tracks AS d USING (rank, track_id)
    GROUP BY e.rank, e.step
), stated AS (
    SELECT h.rank, CASE WHEN h.start_ns < s.end_ns THEN s.step END AS step,
           sum(i.line_cost_ns * coalesce(h.line_records, 1) + i.call_cost_ns * coalesce(h.skipped_calls, 0)
               + i.module_cost_ns * coalesce(h.module_calls, 0)) AS tracing_ns
    FROM host_states AS h
    JOIN rank_info AS i USING (rank)
    ASOF LEFT JOIN step_windows AS s ON s.rank = h.rank AND h.start_ns >= s.start_ns
    GROUP BY ALL
), busiest AS (
    SELECT DISTINCT ON (rank, step) * FROM breakdown ORDER BY rank, step, busy_ns DESC, device
), paused AS (
    SELECT rank, sum(end_ns - start_ns)::BIGINT AS pause_ns FROM capture_pauses GROUP BY rank
), windows AS (
    SELECT rank, step, start_ns, wall_ns, complete, phase FROM step_windows
    UNION ALL
    SELECT rank, NULL, start_ns, end_ns - start_ns - coalesce(pause_ns, 0), true, NULL
    FROM rank_extent LEFT JOIN paused USING (rank) WHERE rank NOT IN (SELECT rank FROM step_windows)
), joined AS (
    SELECT w.rank, w.step, w.start_ns, w.wall_ns, w.complete, w.phase, b.device, coalesce(b.busy_ns, 0) AS busy_ns,
           coalesce(b.idle_ns, w.wall_ns) AS idle_ns, coalesce(c.ops, 0) AS ops, coalesce(c.kernels, 0) AS kernels,
           round(coalesce(c.ops, 0) * i.op_cost_ns + coalesce(h.tracing_ns, 0))::BIGINT AS recording_ns
    FROM windows AS w
    LEFT JOIN rank_info AS i USING (rank)
    LEFT JOIN busiest AS b ON b.rank = w.rank AND b.step IS NOT DISTINCT FROM w.step
    LEFT JOIN counted AS c ON c.rank = w.rank AND c.step IS NOT DISTINCT FROM w.step
    LEFT JOIN stated AS h ON h.rank = w.rank AND h.step IS NOT DISTINCT FROM w.step
)
SELECT rank, step, start_ns, wall_ns, complete, phase, device, busy_ns, idle_ns, ops, kernels, recording_ns,
       greatest(wall_ns - CASE WHEN device = 'cpu' THEN recording_ns ELSE least(recording_ns, idle_ns) END, wall_ns // 10)
           AS corrected_wall_ns
FROM joined
ORDER BY rank, start_ns
