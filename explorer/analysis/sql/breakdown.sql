-- breakdown: where the time of each device goes in each step; wall_ns = compute_ns + exposed_communication_ns +
-- exposed_copy_ns + idle_ns, exactly.
-- One row per rank, device and step, and one with step null for the recorded time outside steps (the whole recording of
-- a rank without steps). Every time is the length of a union of intervals clipped to the window: overlaps count once,
-- compute before communication before copies.
-- Needs: device_time, step_windows
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
WITH whole AS (
    SELECT t.rank, t.device, t.number, s.step, s.complete, s.phase, t.start_ns, coalesce(s.wall_ns, t.length_ns) AS wall_ns,
           t.compute_ns, t.computing_or_communicating_ns - t.compute_ns AS exposed_communication_ns,
           t.busy_ns - t.computing_or_communicating_ns AS exposed_copy_ns, t.communication_ns, t.copy_ns, t.busy_ns
    FROM device_time AS t
    LEFT JOIN step_windows AS s ON s.rank = t.rank AND s.number = t.number
)
SELECT rank, device, step, complete, phase, start_ns, wall_ns, compute_ns, exposed_communication_ns, exposed_copy_ns,
       wall_ns - busy_ns AS idle_ns, communication_ns, copy_ns,
       communication_ns - exposed_communication_ns AS communication_overlap_ns,
       copy_ns - exposed_copy_ns AS copy_overlap_ns, busy_ns
FROM whole
ORDER BY rank, device, number = 0, number
