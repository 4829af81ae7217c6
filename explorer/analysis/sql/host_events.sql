-- host_events: activity on host threads (ops, Python, annotations, runtime calls, waits, data loading, compilation, I/O).
-- Needs: events, tracks
-- Columns
--   rank INTEGER - Process rank
--   event_id BIGINT - Identity within the rank
--   parent_id BIGINT - Enclosing event on the same thread
--   track_id INTEGER - Track of the thread
--   thread VARCHAR - Label of the thread
--   category VARCHAR - op, python, annotation, step, data, compile, runtime, sync, gc, io, overhead, collective or other
--   name VARCHAR - Name as recorded
--   start_ns BIGINT ns Start time
--   duration_ns BIGINT ns Duration
--   end_ns BIGINT ns End time
--   self_ns BIGINT ns Duration minus enclosed events
--   step INTEGER - Step it belongs to
--   phase VARCHAR - forward, backward, optimizer, data ...
--   correlation_id BIGINT - Correlation id as the source gave it
--   op_id BIGINT - Innermost framework op responsible
--   forward_id BIGINT - Backward op: its forward op
--   site_id BIGINT - Responsible source line
--   stack_id BIGINT - User call chain that was executing
--   module_id BIGINT - nn.Module it ran in
--   shapes VARCHAR - JSON list of input shapes
--   dtypes VARCHAR - JSON list of input dtypes
--   attributes VARCHAR - JSON object with every other field
SELECT e.rank, e.event_id, e.parent_id, e.track_id, t.label AS thread, e.category, e.name, e.start_ns, e.duration_ns,
       e.start_ns + e.duration_ns AS end_ns, e.self_ns, e.step, e.phase, e.correlation_id, e.op_id, e.forward_id,
       e.site_id, e.stack_id, e.module_id, e.shapes, e.dtypes, e.attributes
FROM events AS e
JOIN tracks AS t USING (rank, track_id)
WHERE t.kind = 'thread' OR t.kind = 'queue' AND t.device_type = 'cpu'
