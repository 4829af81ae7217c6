-- rank_summary: one row per rank: how long, how many steps, where the busiest device's time goes, how much was recorded.
-- Step times and shares are those of the complete steps; of a rank without steps, of the whole recording.
-- Needs: steps_summary, breakdown, capture_pauses, rank_extent, events, device_tracks
-- Columns
--   rank INTEGER - Process rank
--   wall_ns BIGINT ns From the first to the last event, capture pauses left out
--   steps BIGINT - Steps, complete or not; 0 for a rank without steps
--   complete_steps BIGINT - Complete steps
--   step_ns BIGINT ns Median time of the complete steps; the whole recording without any
--   corrected_step_ns BIGINT ns Median of corrected_wall_ns of the complete steps: without what recording cost
--   device VARCHAR - The device with the most work
--   compute_share DOUBLE - Part of the step time in which compute ran, 0 to 1
--   exposed_communication_share DOUBLE - Part in which only communication ran
--   exposed_copy_share DOUBLE - Part in which only copies or fills ran
--   idle_share DOUBLE - Part in which the device did nothing
--   events BIGINT - Events
--   ops BIGINT - Framework ops
--   kernels BIGINT - Device events
--   lines BIGINT - Distinct source lines that events are charged to
--   linked_share DOUBLE - Part of the ops and device events whose line is known, 0 to 1
WITH stepped AS (
    SELECT rank, count(*) FILTER (step IS NOT NULL) AS steps, count(*) FILTER (complete AND step IS NOT NULL) AS complete_steps,
           coalesce(quantile_disc(wall_ns, 0.5) FILTER (complete), quantile_disc(wall_ns, 0.5)) AS step_ns,
           coalesce(quantile_disc(corrected_wall_ns, 0.5) FILTER (complete), quantile_disc(corrected_wall_ns, 0.5)) AS corrected_step_ns
    FROM steps_summary
    GROUP BY rank
), paused AS (
    SELECT rank, sum(end_ns - start_ns)::BIGINT AS pause_ns FROM capture_pauses GROUP BY rank
), counted AS (
    SELECT e.rank, count(*) AS events, count(*) FILTER (category = 'op') AS ops,
           count(*) FILTER (d.track_id IS NOT NULL AND category IN ('kernel', 'copy', 'fill', 'collective', 'instruction', 'dma')) AS kernels,
           count(DISTINCT site_id) AS lines,
           count(site_id) FILTER (category = 'op' OR d.track_id IS NOT NULL AND category IN ('kernel', 'copy', 'fill', 'collective', 'instruction', 'dma')) AS linked,
           count(*) FILTER (category = 'op' OR d.track_id IS NOT NULL AND category IN ('kernel', 'copy', 'fill', 'collective', 'instruction', 'dma')) AS linkable
    FROM events AS e
    LEFT JOIN device_tracks AS d USING (rank, track_id)
    GROUP BY e.rank
), relevant AS (
    SELECT b.*, bool_or(coalesce(complete, false)) OVER (PARTITION BY rank) AS has_complete,
           bool_or(step IS NOT NULL) OVER (PARTITION BY rank) AS has_steps
    FROM breakdown AS b
), devices AS (
    SELECT rank, device, sum(wall_ns) AS wall_ns, sum(compute_ns) AS compute_ns, sum(exposed_communication_ns) AS communication_ns,
           sum(exposed_copy_ns) AS copy_ns, sum(idle_ns) AS idle_ns, sum(busy_ns) AS busy_ns
    FROM relevant
    WHERE CASE WHEN has_complete THEN complete WHEN has_steps THEN step IS NOT NULL ELSE true END
    GROUP BY rank, device
), busiest AS (
    SELECT DISTINCT ON (rank) * FROM devices ORDER BY rank, busy_ns DESC, device
)
SELECT c.rank, coalesce(r.end_ns - r.start_ns - coalesce(p.pause_ns, 0), 0) AS wall_ns, coalesce(s.steps, 0) AS steps,
       coalesce(s.complete_steps, 0) AS complete_steps, coalesce(s.step_ns, 0) AS step_ns, coalesce(s.corrected_step_ns, 0) AS corrected_step_ns, b.device,
       b.compute_ns / nullif(b.wall_ns, 0) AS compute_share, b.communication_ns / nullif(b.wall_ns, 0) AS exposed_communication_share,
       b.copy_ns / nullif(b.wall_ns, 0) AS exposed_copy_share, b.idle_ns / nullif(b.wall_ns, 0) AS idle_share,
       c.events, c.ops, c.kernels, c.lines, c.linked / nullif(c.linkable, 0) AS linked_share
FROM counted AS c
LEFT JOIN rank_extent AS r USING (rank)
LEFT JOIN stepped AS s USING (rank)
LEFT JOIN paused AS p USING (rank)
LEFT JOIN busiest AS b USING (rank)
ORDER BY c.rank
