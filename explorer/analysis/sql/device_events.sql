-- device_events: work on device tracks (kernels, copies, fills, collectives, instructions, DMA), with device and stream.
-- Waits, annotations and other ranges on device tracks are not work; they stay in `events`.
-- Needs: events, device_tracks
-- Columns
--   rank INTEGER - Process rank
--   event_id BIGINT - Identity within the rank
--   track_id INTEGER - Track of the stream, engine or queue
--   device VARCHAR - Device as text, such as cuda:0
--   stream VARCHAR - Label of the stream, engine or queue
--   category VARCHAR - kernel, copy, fill, collective, instruction or dma
--   name VARCHAR - Name as recorded
--   start_ns BIGINT ns Start time
--   duration_ns BIGINT ns Duration
--   end_ns BIGINT ns End time
--   step INTEGER - Step of the launching host event
--   phase VARCHAR - Phase of the launching host event
--   correlation_id BIGINT - Correlation id as the source gave it
--   launch_id BIGINT - Host event that enqueued it
--   op_id BIGINT - Innermost framework op responsible
--   site_id BIGINT - Responsible source line
--   module_id BIGINT - nn.Module it ran in
--   attribution VARCHAR - How the line is known
--   flops BIGINT flop Floating point operations, where known
--   size_bytes BIGINT bytes Bytes moved, where known
--   attributes VARCHAR - JSON object with every other field
SELECT e.rank, e.event_id, e.track_id, t.device, t.stream, e.category, e.name, e.start_ns, e.duration_ns,
       e.start_ns + e.duration_ns AS end_ns, e.step, e.phase, e.correlation_id, e.launch_id, e.op_id, e.site_id,
       e.module_id, e.attribution, e.flops, e.size_bytes, e.attributes
FROM events AS e
JOIN device_tracks AS t USING (rank, track_id)
WHERE e.category IN ('kernel', 'copy', 'fill', 'collective', 'instruction', 'dma')
