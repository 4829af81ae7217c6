-- path_work: the critical path of complete steps with what each piece belongs to: line, module, phase, op.
-- The durations of a step add up to its wall time, so sums by any of these columns explain a step's time fully.
-- Needs: critical_path, events, sites, modules, steps
-- Columns
--   rank INTEGER - Process rank
--   step INTEGER - Step; null for a rank without steps
--   duration_ns BIGINT ns Length of the piece
--   kind VARCHAR - Kind of the piece (critical_path)
--   phase VARCHAR - forward, backward, optimizer, data ...; 'data' for fetching batches, 'other' where unknown
--   module VARCHAR - nn.Module path; null where unknown
--   site_id BIGINT - Responsible line; null where unknown
--   file VARCHAR - Its file
--   line INTEGER - Its number
--   function VARCHAR - Its function
--   code VARCHAR - Its text
--   op VARCHAR - The framework op that ran, or that enqueued the device event; null for Python and idle time
--   kernel VARCHAR - Name of the device event; null on the host
--   event_id BIGINT - The event
WITH has_steps AS (
    SELECT DISTINCT rank FROM steps WHERE complete
)
SELECT p.rank, p.step, p.duration_ns, p.kind,
       coalesce(e.phase, o.phase, CASE WHEN p.kind = 'data' THEN 'data' END, 'other') AS phase,
       m.path AS module, p.site_id, s.file, s.line, s.function, s.code,
       CASE WHEN p.kind IN ('python', 'idle') THEN NULL WHEN e.category = 'op' THEN e.name ELSE o.name END AS op,
       CASE WHEN t.kind <> 'thread' THEN e.name END AS kernel, p.event_id
FROM critical_path AS p
LEFT JOIN has_steps AS h USING (rank)
LEFT JOIN steps AS x ON x.rank = p.rank AND x.step = p.step AND p.start_ns >= x.start_ns AND p.start_ns < x.start_ns + x.duration_ns
LEFT JOIN events AS e ON e.rank = p.rank AND e.event_id = p.event_id
LEFT JOIN tracks AS t ON t.rank = e.rank AND t.track_id = e.track_id
LEFT JOIN events AS o ON o.rank = e.rank AND o.event_id = e.op_id
LEFT JOIN modules AS m ON m.module_id = coalesce(e.module_id, o.module_id)
LEFT JOIN sites AS s ON s.site_id = p.site_id
WHERE h.rank IS NULL OR x.complete
