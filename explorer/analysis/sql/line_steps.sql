-- line_steps: What each user line cost in each step on each host thread: wall time, time inside ops, visits.
-- A line is charged while it is the innermost user line being executed. A run without steps has one row of step null.
-- Needs: host_states, events, steps, stacks, top_ops
-- Columns
--   rank      int     -      Process rank
--   step      int     -      Step number; null where the run has no steps
--   track_id  int     -      Host thread (tracks)
--   site_id   bigint  -      The line (sites); null while no user code was on the stack
--   visits    bigint  count  Times the thread came to this line
--   host_ns   bigint  ns     Wall time of the thread at this line inside the step
--   op_ns     bigint  ns     Part of it inside framework ops (outermost ops only, so nothing counts twice)
--   python_ns bigint  ns     The rest: Python and waiting
--   top_ops   bigint  count  Outermost ops
--   ops       bigint  count  All ops, nested ones included
WITH bounds AS (
  SELECT rank, step, start_ns, start_ns + duration_ns AS end_ns FROM steps
  UNION ALL
  SELECT rank, NULL, min(start_ns), max(start_ns + duration_ns) FROM host_states
  WHERE rank NOT IN (SELECT rank FROM steps) GROUP BY rank
),
numbered AS (
  SELECT *, row_number() OVER (PARTITION BY rank ORDER BY start_ns) AS number FROM bounds
),
spans AS (
  -- First and last step a state can touch; a state before the first step has no first.
  SELECT h.rank, h.track_id, h.site_id, h.start_ns, h.start_ns + h.duration_ns AS end_ns,
    coalesce(a.number, 1) AS first_number, b.number AS last_number
  FROM host_states h
  ASOF LEFT JOIN numbered a ON h.rank = a.rank AND h.start_ns >= a.start_ns
  ASOF JOIN numbered b ON h.rank = b.rank AND h.start_ns + h.duration_ns >= b.start_ns
),
pieces AS (
  SELECT rank, track_id, site_id, start_ns, end_ns,
    unnest(generate_series(first_number, last_number)) AS number
  FROM spans
),
states AS (
  SELECT p.rank, n.step, p.track_id, p.site_id, count(*) AS visits,
    sum(least(p.end_ns, n.end_ns) - greatest(p.start_ns, n.start_ns))::BIGINT AS host_ns
  FROM pieces p JOIN numbered n ON p.rank = n.rank AND p.number = n.number
  WHERE p.start_ns < n.end_ns AND p.end_ns > n.start_ns
  GROUP BY ALL
),
op_time AS (
  SELECT e.rank, e.step, e.track_id, coalesce(k.site_id, e.site_id) AS site_id, count(*) AS ops
  FROM events e LEFT JOIN stacks k ON k.stack_id = e.stack_id AND k.depth = 0
  WHERE e.category = 'op' AND (e.step IS NOT NULL OR e.rank NOT IN (SELECT rank FROM steps))
  GROUP BY ALL
),
top_time AS (
  SELECT t.rank, t.step, t.track_id, t.executing_site_id AS site_id, count(*) AS top_ops, sum(t.duration_ns)::BIGINT AS op_ns
  FROM top_ops t WHERE t.step IS NOT NULL OR t.rank NOT IN (SELECT rank FROM steps)
  GROUP BY ALL
)
SELECT rank, step, track_id, site_id,
  coalesce(sum(visits), 0)::BIGINT AS visits,
  coalesce(sum(host_ns), 0)::BIGINT AS host_ns,
  coalesce(sum(op_ns), 0)::BIGINT AS op_ns,
  greatest(coalesce(sum(host_ns), 0) - coalesce(sum(op_ns), 0), 0)::BIGINT AS python_ns,
  coalesce(sum(top_ops), 0)::BIGINT AS top_ops,
  coalesce(sum(ops), 0)::BIGINT AS ops
FROM (
  SELECT rank, step, track_id, site_id, visits, host_ns, NULL AS op_ns, NULL AS top_ops, NULL AS ops FROM states
  UNION ALL
  SELECT rank, step, track_id, site_id, NULL, NULL, NULL, NULL, ops FROM op_time
  UNION ALL
  SELECT rank, step, track_id, site_id, NULL, NULL, op_ns, top_ops, NULL FROM top_time
)
GROUP BY rank, step, track_id, site_id
