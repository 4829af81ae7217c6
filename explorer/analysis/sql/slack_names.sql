-- slack_names: work by name and line with how long it could be delayed without delaying the last step, over complete steps
-- (over the whole recording for a rank without steps). The least slack decides: 0 is on the critical path.
-- Needs: slack, events, steps, sites
-- Columns
--   rank INTEGER - Process rank
--   name VARCHAR - Op, kernel or call
--   on_device BOOLEAN - Whether it ran on a device
--   site_id BIGINT - Responsible source line (sites); null: no line known
--   file VARCHAR - File of the line
--   line INTEGER - Line number
--   calls BIGINT - How many
--   total_ns BIGINT ns Their durations
--   critical_calls BIGINT - Calls without slack
--   least_slack_ns BIGINT ns Least slack of a call; null: nothing waited for any of them
--   median_slack_ns BIGINT ns Median slack of the calls that something waited for
--   unawaited_calls BIGINT - Calls that nothing before the end waited for
WITH counted AS (
    SELECT rank, count(*) FILTER (complete) AS complete_steps FROM steps GROUP BY rank
), taken AS (
    SELECT k.rank, e.name, k.on_device, e.site_id, k.duration_ns, k.slack_ns
    FROM slack AS k
    JOIN events AS e ON e.rank = k.rank AND e.event_id = k.event_id
    LEFT JOIN counted AS c ON c.rank = k.rank
    LEFT JOIN steps AS s ON s.rank = k.rank AND s.step = k.step AND k.start_ns >= s.start_ns AND k.start_ns < s.start_ns + s.duration_ns
    WHERE coalesce(c.complete_steps, 0) = 0 OR s.complete
), summed AS (
    SELECT rank, name, on_device, site_id, count(*) AS calls, sum(duration_ns)::BIGINT AS total_ns,
           count(*) FILTER (slack_ns = 0) AS critical_calls, min(slack_ns) AS least_slack_ns,
           quantile_disc(slack_ns, 0.5) AS median_slack_ns, count(*) FILTER (slack_ns IS NULL) AS unawaited_calls
    FROM taken
    GROUP BY rank, name, on_device, site_id
)
SELECT t.rank, t.name, t.on_device, t.site_id, s.file, s.line, t.calls, t.total_ns, t.critical_calls, t.least_slack_ns,
       t.median_slack_ns, t.unawaited_calls
FROM summed AS t
LEFT JOIN sites AS s USING (site_id)
ORDER BY t.rank, t.total_ns DESC, t.name, s.file, s.line
