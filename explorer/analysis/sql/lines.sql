-- lines: what each source line costs, on the host and on the devices.
-- `host_ns` is what the line took while it was executing; `charged_ns` is what it is responsible for: the ops of a
-- backward pass are charged to the line of their forward op, not to loss.backward(). cost_ns = python_ns + charged_ns
-- adds up over lines to the recorded host time. Ranks without host_states (imported traces) have op and runtime time by
-- the line of the event, and Python time from recorded Python functions.
-- Needs: line_states, host_states, event_sites, events, device_tracks, sites, rank_info
-- Columns
--   site_id BIGINT - Source line (sites)
--   file VARCHAR - File of the line
--   line INTEGER - Line number; 0 where only the function is known
--   function VARCHAR - Function
--   code VARCHAR - Source text
--   is_user BOOLEAN - User code
--   host_ns BIGINT ns Time threads spent executing this line itself: op_ns + python_ns + other_ns
--   op_ns BIGINT ns Part of it inside framework ops
--   python_ns BIGINT ns Part of it in Python itself, inside a DataLoader's fetch or not
--   other_ns BIGINT ns Part of it in runtime calls, waits, compilation, collection or I/O outside ops
--   charged_ns BIGINT ns Host time of the ops and calls this line is responsible for, backward passes included
--   cost_ns BIGINT ns python_ns + charged_ns
--   corrected_cost_ns BIGINT ns cost_ns without what recording its ops, lines, library and module calls cost; never less than a tenth of cost_ns
--   device_ns BIGINT ns Device time of the work this line is responsible for
--   calls BIGINT - Times a thread came to this line (from host_states); null where the run holds none
--   ops BIGINT - Ops this line is responsible for
--   kernels BIGINT - Device events this line is responsible for
--   share DOUBLE - Part of the recorded host time (cost_ns over all lines and unknown ones), 0 to 1
--   device_share DOUBLE - Part of all device time, 0 to 1
WITH stateful AS (
    SELECT DISTINCT rank FROM host_states
), executed AS (
    SELECT site_id, sum(host_ns) AS host_ns, sum(op_ns) AS op_ns, sum(other_ns) AS other_ns, sum(python_ns) AS python_ns
    FROM line_states
    GROUP BY site_id
), visited AS (
    SELECT h.site_id, sum(h.states)::BIGINT AS calls,
           sum(h.records * i.line_cost_ns + h.skipped_calls * i.call_cost_ns + h.module_calls * i.module_cost_ns) AS recording_ns
    FROM (SELECT rank, site_id, count(*) AS states, sum(coalesce(line_records, 1)) AS records,
                 coalesce(sum(skipped_calls), 0) AS skipped_calls, coalesce(sum(module_calls), 0) AS module_calls
          FROM host_states GROUP BY rank, site_id) AS h
    JOIN rank_info AS i USING (rank)
    GROUP BY h.site_id
), worked AS (
    -- Few rows: all that follows of an event depends on these.
    SELECT e.rank, e.track_id, e.category, CASE WHEN r.event_id IS NULL THEN e.site_id ELSE r.site_id END AS site_id,
           count(*) AS events, sum(CASE WHEN r.event_id IS NOT NULL THEN r.share WHEN e.site_id IS NOT NULL THEN 1.0 END) AS shares,
           sum(CASE WHEN r.event_id IS NOT NULL THEN r.share WHEN e.site_id IS NOT NULL THEN 1.0 END * e.self_ns) AS shared_self_ns,
           sum(CASE WHEN r.event_id IS NOT NULL THEN r.share WHEN e.site_id IS NOT NULL THEN 1.0 END * e.duration_ns) AS shared_ns,
           sum(e.self_ns) AS self_ns
    FROM events AS e
    LEFT JOIN (SELECT * FROM event_sites WHERE role = 'responsible') AS r ON r.rank = e.rank AND r.event_id = e.event_id
    GROUP BY ALL
), charged AS (
    SELECT e.site_id,
           sum(e.shared_self_ns) FILTER (d.track_id IS NULL AND e.category NOT IN ('python', 'annotation', 'step', 'overhead', 'other')
                                           AND (s.rank IS NULL OR e.category <> 'data')) AS charged_ns,
           sum(e.events) FILTER (e.category = 'op') AS ops,
           sum(e.shares * i.op_cost_ns) FILTER (e.category = 'op') AS recording_ns,
           sum(e.shared_ns) FILTER (d.track_id IS NOT NULL AND e.category IN ('kernel', 'copy', 'fill', 'collective', 'instruction', 'dma')) AS device_ns,
           sum(e.events) FILTER (d.track_id IS NOT NULL AND e.category IN ('kernel', 'copy', 'fill', 'collective', 'instruction', 'dma')) AS kernels,
           sum(e.self_ns) FILTER (s.rank IS NULL AND d.track_id IS NULL AND e.category = 'op') AS op_ns,
           sum(e.self_ns) FILTER (s.rank IS NULL AND d.track_id IS NULL AND e.category IN ('runtime', 'sync', 'data', 'compile', 'gc', 'io', 'collective')) AS other_ns,
           sum(e.self_ns) FILTER (s.rank IS NULL AND e.category = 'python') AS python_ns
    FROM worked AS e
    LEFT JOIN device_tracks AS d ON d.rank = e.rank AND d.track_id = e.track_id
    LEFT JOIN stateful AS s ON s.rank = e.rank
    LEFT JOIN rank_info AS i ON i.rank = e.rank
    GROUP BY e.site_id
), joined AS (
    SELECT coalesce(c.site_id, x.site_id) AS site_id,
           coalesce(x.op_ns, 0) + coalesce(c.op_ns, 0) AS op_ns,
           coalesce(x.other_ns, 0) + coalesce(c.other_ns, 0) AS other_ns,
           coalesce(x.python_ns, 0) + coalesce(c.python_ns, 0) AS python_ns,
           round(coalesce(c.charged_ns, 0)) AS charged_ns, round(coalesce(c.device_ns, 0)) AS device_ns,
           coalesce(c.recording_ns, 0) AS recording_ns, coalesce(c.ops, 0)::BIGINT AS ops, coalesce(c.kernels, 0)::BIGINT AS kernels
    FROM charged AS c
    FULL JOIN executed AS x ON x.site_id IS NOT DISTINCT FROM c.site_id
), shared AS (
    SELECT *, coalesce((python_ns + charged_ns) / nullif(sum(python_ns + charged_ns) OVER (), 0), 0.0) AS share,
           coalesce(device_ns / nullif(sum(device_ns) OVER (), 0), 0.0) AS device_share
    FROM joined
)
SELECT s.site_id, s.file, s.line, s.function, s.code, s.is_user, (j.op_ns + j.python_ns + j.other_ns)::BIGINT AS host_ns,
       j.op_ns::BIGINT AS op_ns, j.python_ns::BIGINT AS python_ns, j.other_ns::BIGINT AS other_ns,
       j.charged_ns::BIGINT AS charged_ns, (j.python_ns + j.charged_ns)::BIGINT AS cost_ns,
       round(greatest(j.python_ns + j.charged_ns - j.recording_ns - coalesce(v.recording_ns, 0), (j.python_ns + j.charged_ns) / 10))::BIGINT
           AS corrected_cost_ns, j.device_ns::BIGINT AS device_ns,
       v.calls, j.ops, j.kernels, j.share, j.device_share
FROM shared AS j
JOIN sites AS s ON s.site_id = j.site_id
LEFT JOIN visited AS v ON v.site_id = j.site_id
ORDER BY device_ns DESC, cost_ns DESC, s.file, s.line
