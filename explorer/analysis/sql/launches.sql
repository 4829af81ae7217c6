-- launches: each device event with the host call that enqueued it: delay, queue depth, short kernels.
-- Any launching call counts: CUDA runtime and driver (Triton), HIP, XPU, NPU, graph launches.
-- Needs: device_events, events
-- Columns
--   rank INTEGER - Process rank
--   event_id BIGINT - The device event
--   launch_id BIGINT - The host event that enqueued it
--   device VARCHAR - Device as text
--   stream VARCHAR - Label of the stream
--   name VARCHAR - Name of the device event
--   category VARCHAR - kernel, copy, fill, collective, instruction or dma
--   launch_name VARCHAR - Name of the launching call
--   step INTEGER - Step of the device event
--   op_id BIGINT - Innermost op responsible
--   site_id BIGINT - Responsible source line
--   launch_start_ns BIGINT ns Start of the launching call
--   launch_ns BIGINT ns Duration of the launching call
--   start_ns BIGINT ns Start on the device
--   duration_ns BIGINT ns Duration on the device
--   delay_ns BIGINT ns From the end of the call to the start on the device, 0 where it started before the call returned
--   latency_ns BIGINT ns From the start of the call to the start on the device; negative where clocks disagree
--   queue_depth BIGINT - Device events of this stream enqueued and not yet started, this one included, when the call began
--   launched_together BIGINT - Device events of the same call (more than 1: a graph launch)
--   is_short BOOLEAN - The device event is shorter than the call that enqueued it
WITH paired AS (
    SELECT k.rank, k.event_id, k.launch_id, k.device, k.stream, k.track_id, k.name, k.category, h.name AS launch_name, k.step,
           k.op_id, k.site_id, h.start_ns AS launch_start_ns, h.duration_ns AS launch_ns, k.start_ns, k.duration_ns
    FROM device_events AS k
    JOIN events AS h ON h.rank = k.rank AND h.event_id = k.launch_id
), queue AS (
    SELECT rank, track_id, event_id, launch_start_ns AS at_ns, 1 AS change FROM paired
    UNION ALL
    SELECT rank, track_id, NULL, start_ns, -1 FROM paired
), depths AS (
    SELECT rank, event_id, sum(change) OVER (PARTITION BY rank, track_id ORDER BY at_ns, change, event_id ROWS UNBOUNDED PRECEDING) AS depth
    FROM queue
)
SELECT p.rank, p.event_id, p.launch_id, p.device, p.stream, p.name, p.category, p.launch_name, p.step, p.op_id, p.site_id,
       p.launch_start_ns, p.launch_ns, p.start_ns, p.duration_ns,
       greatest(p.start_ns - p.launch_start_ns - p.launch_ns, 0) AS delay_ns, p.start_ns - p.launch_start_ns AS latency_ns,
       d.depth::BIGINT AS queue_depth, count(*) OVER (PARTITION BY p.rank, p.launch_id) AS launched_together,
       p.duration_ns < p.launch_ns AS is_short
FROM paired AS p
JOIN depths AS d ON d.rank = p.rank AND d.event_id = p.event_id
