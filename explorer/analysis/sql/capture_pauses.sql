-- capture_pauses: times between capture windows, in which nothing was recorded.
-- Needs: step_windows
-- Columns
--   rank INTEGER - Process rank
--   start_ns BIGINT ns End of the last step of a capture window
--   end_ns BIGINT ns Start of the first step of the next one
WITH ordered AS (
    SELECT rank, end_ns AS start_ns, capture_window, lead(start_ns) OVER following AS end_ns,
           lead(capture_window) OVER following AS next_window
    FROM step_windows
    WINDOW following AS (PARTITION BY rank ORDER BY number)
)
SELECT rank, start_ns, end_ns FROM ordered WHERE next_window <> capture_window AND end_ns > start_ns
