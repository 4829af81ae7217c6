-- capture_pauses: times between capture windows, in which nothing was recorded.
-- As the capture says; where it does not say, from the end of the last step of a window to the first of the next.
-- Needs: step_windows, capture_windows
-- Columns
--   rank INTEGER - Process rank
--   start_ns BIGINT ns When the recording stopped
--   end_ns BIGINT ns When it went on
WITH ordered AS (
    SELECT rank, end_ns AS start_ns, capture_window, lead(start_ns) OVER following AS end_ns,
           lead(capture_window) OVER following AS next_window
    FROM step_windows
    WHERE rank NOT IN (SELECT rank FROM capture_windows)
    WINDOW following AS (PARTITION BY rank ORDER BY number)
), told AS (
    SELECT rank, max(end_ns) OVER earlier AS start_ns, start_ns AS end_ns
    FROM capture_windows
    WINDOW earlier AS (PARTITION BY rank ORDER BY start_ns ROWS BETWEEN UNBOUNDED PRECEDING AND 1 PRECEDING)
)
SELECT rank, start_ns, end_ns FROM ordered WHERE next_window <> capture_window AND end_ns > start_ns
UNION ALL
SELECT rank, start_ns, end_ns FROM told WHERE end_ns > start_ns
