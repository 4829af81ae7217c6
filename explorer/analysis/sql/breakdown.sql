-- breakdown: where the time of each device goes in each step; wall_ns = compute_ns + exposed_communication_ns +
-- exposed_copy_ns + idle_ns, exactly.
-- One row per rank, device and step, and one with step null for the recorded time outside steps (the whole recording of
-- a rank without steps). Every time is the length of a union of intervals clipped to the window: overlaps count once,
-- compute before communication before copies.
-- Needs: work_intervals, rank_devices, step_windows, rank_extent, capture_pauses
-- Columns
--   rank INTEGER - Process rank
--   device VARCHAR - Device as text; cpu for a rank without device events, whose compute is the union of its ops
--   step INTEGER - Step number; null for the time outside steps
--   complete BOOLEAN - False for a step cut by the edge of the capture; null outside steps
--   phase VARCHAR - Phase of the step where it has one
--   start_ns BIGINT ns Start of the window
--   wall_ns BIGINT ns Time of the window, capture pauses left out
--   compute_ns BIGINT ns Time in which compute ran
--   exposed_communication_ns BIGINT ns Time in which communication ran and no compute
--   exposed_copy_ns BIGINT ns Time in which copies or fills ran and neither compute nor communication
--   idle_ns BIGINT ns Time in which nothing ran
--   communication_ns BIGINT ns Time in which communication ran
--   copy_ns BIGINT ns Time in which copies or fills ran
--   communication_overlap_ns BIGINT ns Communication hidden under compute
--   copy_overlap_ns BIGINT ns Copies hidden under compute or communication
--   busy_ns BIGINT ns Time in which anything ran
WITH devices AS MATERIALIZED (
    SELECT * FROM rank_devices
), marks AS (
    SELECT rank, start_ns AS at_ns, number, 0 AS recorded FROM step_windows
    UNION ALL
    SELECT rank, end_ns, -number, 0 FROM step_windows
    UNION ALL
    SELECT rank, unnest([start_ns, end_ns]), 0, unnest([1, -1]) FROM rank_extent
    UNION ALL
    SELECT rank, unnest([start_ns, end_ns]), 0, unnest([-1, 1]) FROM capture_pauses
), work AS (
    SELECT place, start_ns, end_ns, (class = 'compute')::INT AS compute, (class = 'communication')::INT AS communication,
           (class = 'copy')::INT AS copy
    FROM work_intervals JOIN devices USING (rank, device)
), boundaries AS (
    SELECT place, start_ns AS at_ns, compute, communication, copy, 0 AS number, 0 AS recorded FROM work
    UNION ALL
    SELECT place, end_ns, -compute, -communication, -copy, 0, 0 FROM work
    UNION ALL
    SELECT place, at_ns, 0, 0, 0, number, recorded FROM marks JOIN devices USING (rank)
), segments AS (
    SELECT place, at_ns, lead(at_ns) OVER sweep - at_ns AS length_ns, sum(compute) OVER sweep > 0 AS compute,
           sum(communication) OVER sweep > 0 AS communication, sum(copy) OVER sweep > 0 AS copy,
           (sum(number) OVER sweep)::BIGINT AS number, sum(recorded) OVER sweep > 0 AS recorded
    FROM boundaries
    WINDOW sweep AS (PARTITION BY place ORDER BY at_ns)
), totals AS (
    SELECT place, number, min(at_ns) AS start_ns, sum(length_ns) AS wall_ns,
           sum(length_ns) FILTER (compute) AS compute_ns,
           sum(length_ns) FILTER (communication AND NOT compute) AS exposed_communication_ns,
           sum(length_ns) FILTER (copy AND NOT compute AND NOT communication) AS exposed_copy_ns,
           sum(length_ns) FILTER (communication) AS communication_ns,
           sum(length_ns) FILTER (copy) AS copy_ns
    FROM segments
    WHERE length_ns > 0 AND (recorded OR number > 0)
    GROUP BY place, number
), whole AS (
    SELECT d.rank, d.device, t.number, s.step, s.complete, s.phase, t.start_ns,
           coalesce(s.wall_ns, t.wall_ns)::BIGINT AS wall_ns,
           coalesce(t.compute_ns, 0)::BIGINT AS compute_ns,
           coalesce(t.exposed_communication_ns, 0)::BIGINT AS exposed_communication_ns,
           coalesce(t.exposed_copy_ns, 0)::BIGINT AS exposed_copy_ns,
           coalesce(t.communication_ns, 0)::BIGINT AS communication_ns, coalesce(t.copy_ns, 0)::BIGINT AS copy_ns
    FROM totals AS t
    JOIN devices AS d USING (place)
    LEFT JOIN step_windows AS s ON s.rank = d.rank AND s.number = t.number
)
SELECT rank, device, step, complete, phase, start_ns, wall_ns, compute_ns, exposed_communication_ns, exposed_copy_ns,
       wall_ns - compute_ns - exposed_communication_ns - exposed_copy_ns AS idle_ns,
       communication_ns, copy_ns, communication_ns - exposed_communication_ns AS communication_overlap_ns,
       copy_ns - exposed_copy_ns AS copy_overlap_ns,
       compute_ns + exposed_communication_ns + exposed_copy_ns AS busy_ns
FROM whole
ORDER BY rank, device, number = 0, number
