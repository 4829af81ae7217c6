-- lines_by_place: what each source line costs, with the comprehensions, lambdas and other code objects that stand on it.
-- `lines` has a row for each code object of a line. Here they are one, so that a line and a generator inside it do not look like two.
-- Where only functions are known (line 0) each function stays a row.
-- Needs: lines
-- Columns
--   site_id BIGINT - The costliest code object of the line (sites)
--   file VARCHAR - File of the line
--   line INTEGER - Line number; 0 where only the function is known
--   function VARCHAR - Functions whose code stands on the line, costliest first
--   code VARCHAR - Source text
--   is_user BOOLEAN - User code
--   host_ns BIGINT ns Time threads spent executing this line itself: op_ns + python_ns + other_ns
--   op_ns BIGINT ns Part of it inside framework ops
--   python_ns BIGINT ns Part of it in Python itself, inside a DataLoader's fetch or not
--   other_ns BIGINT ns Part of it in runtime calls, waits, compilation, collection or I/O outside ops
--   charged_ns BIGINT ns Host time of the ops and calls this line is responsible for, backward passes included
--   cost_ns BIGINT ns python_ns + charged_ns
--   corrected_cost_ns BIGINT ns cost_ns without what recording its ops and line states cost; never less than a tenth of cost_ns
--   device_ns BIGINT ns Device time of the work this line is responsible for
--   calls BIGINT - Times a thread came to code on this line, each pass of a comprehension included; null where the run has no host_states
--   ops BIGINT - Ops this line is responsible for
--   kernels BIGINT - Device events this line is responsible for
--   share DOUBLE - Part of the recorded host time (cost_ns over all lines and unknown ones), 0 to 1
--   device_share DOUBLE - Part of all device time, 0 to 1
SELECT first(site_id ORDER BY device_ns DESC, cost_ns DESC, function) AS site_id, file, line,
       string_agg(function, ', ' ORDER BY device_ns DESC, cost_ns DESC, function) AS function,
       first(code ORDER BY device_ns DESC, cost_ns DESC, function) AS code, bool_or(is_user) AS is_user,
       sum(host_ns)::BIGINT AS host_ns, sum(op_ns)::BIGINT AS op_ns, sum(python_ns)::BIGINT AS python_ns,
       sum(other_ns)::BIGINT AS other_ns, sum(charged_ns)::BIGINT AS charged_ns, sum(cost_ns)::BIGINT AS cost_ns,
       sum(corrected_cost_ns)::BIGINT AS corrected_cost_ns, sum(device_ns)::BIGINT AS device_ns, sum(calls)::BIGINT AS calls,
       sum(ops)::BIGINT AS ops, sum(kernels)::BIGINT AS kernels, sum(share) AS share, sum(device_share) AS device_share
FROM lines
GROUP BY file, line, CASE WHEN line > 0 THEN 0 ELSE site_id END
ORDER BY device_ns DESC, cost_ns DESC, file, line, function
