-- top_ops: Outermost framework ops of each host thread, with the line that was executing and the line responsible.
-- They do not overlap on one thread, so their durations add up. A backward node counts once, its kernels inside it.
-- Needs: events, stacks
-- Columns
--   rank              int      -     Process rank
--   event_id          bigint   -     The op (events)
--   track_id          int      -     Host thread (tracks)
--   step              int      -     Step, null outside steps
--   phase             varchar  -     forward, backward, optimizer ...
--   name              varchar  -     Op name
--   start_ns          bigint   ns    Start
--   duration_ns       bigint   ns    Duration, nested ops included
--   site_id           bigint   -     Responsible line: of a backward op the line of its forward op
--   executing_site_id bigint   -     Line that was executing: of a backward op the line that called backward
--   parent_name       varchar  -     Name of the annotation or range around it, if any
WITH reached AS (
  -- Python functions may lie between an op and the op around it, so what counts is time, not the parent. Only the columns
  -- that say so are sorted.
  SELECT rank, event_id, start_ns + duration_ns AS end_ns,
    max(start_ns + duration_ns) OVER (PARTITION BY rank, track_id ORDER BY start_ns, duration_ns DESC, event_id
    ROWS BETWEEN UNBOUNDED PRECEDING AND 1 PRECEDING) AS reached_ns
  FROM events WHERE category = 'op'
),
outermost AS (SELECT rank, event_id FROM reached WHERE reached_ns IS NULL OR reached_ns < end_ns)
SELECT e.rank, e.event_id, e.track_id, e.step,
  coalesce(e.phase, CASE WHEN e.name LIKE 'autograd::engine::evaluate_function%' OR e.name LIKE '%Backward%' THEN 'backward' END) AS phase,
  e.name, e.start_ns, e.duration_ns,
  coalesce(e.site_id, k.site_id) AS site_id, coalesce(k.site_id, e.site_id) AS executing_site_id, p.name AS parent_name
FROM (SELECT * FROM events SEMI JOIN outermost USING (rank, event_id) WHERE category = 'op') e
LEFT JOIN events p ON p.rank = e.rank AND p.event_id = e.parent_id
LEFT JOIN stacks k ON k.stack_id = e.stack_id AND k.depth = 0
