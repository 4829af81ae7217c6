-- step_windows: the steps of each rank as time windows that do not overlap, numbered in order.
-- A step that begins before the previous one has ended is cut at that end.
-- Needs: steps
-- Columns
--   rank INTEGER - Process rank
--   number BIGINT - 1 for the first step of the rank, in order of time
--   step INTEGER - Step number
--   start_ns BIGINT ns Start of the window
--   end_ns BIGINT ns End of the window, capture pauses inside included
--   wall_ns BIGINT ns Time of the window without capture pauses
--   complete BOOLEAN - False for a step cut by the edge of the capture
--   phase VARCHAR - train, evaluation, prefill, decode or null
--   capture_window INTEGER - Capture window it belongs to
WITH bounded AS (
    SELECT *, start_ns + duration_ns + coalesce(pause_ns, 0) AS end_ns,
           max(start_ns + duration_ns + coalesce(pause_ns, 0)) OVER (
               PARTITION BY rank ORDER BY start_ns, step ROWS BETWEEN UNBOUNDED PRECEDING AND 1 PRECEDING) AS previous_end
    FROM steps
), cut AS (
    SELECT rank, step, greatest(start_ns, coalesce(previous_end, start_ns)) AS start_ns, end_ns,
           coalesce(pause_ns, 0) AS pause_ns, complete, phase, "window" AS capture_window
    FROM bounded
)
SELECT rank, row_number() OVER (PARTITION BY rank ORDER BY start_ns, step) AS number, step, start_ns, end_ns,
       greatest(end_ns - start_ns - pause_ns, 0) AS wall_ns, complete, phase, capture_window
FROM cut
WHERE end_ns > start_ns
