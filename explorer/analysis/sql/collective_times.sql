-- collective_times: each communication call or kernel of a rank: what it moved, how fast, how much of it compute hid.
-- Bandwidths are from this rank's own duration, waiting for others included; `collectives_matched` has the true latency.
-- Algorithm bandwidth is message over time; bus bandwidth multiplies it by 2(n-1)/n for all_reduce, (n-1)/n for all_gather,
-- reduce_scatter and all_to_all, 1 otherwise (the conventions of nccl-tests, PERFORMANCE.md).
-- Needs: collectives, events, work_intervals, device_tracks
-- Columns
--   rank INTEGER - Process rank
--   event_id BIGINT - The event
--   device VARCHAR - Device; cpu for calls on the host
--   step INTEGER - Step
--   operation VARCHAR - all_reduce, all_gather ...
--   group_name VARCHAR - Process group
--   members BIGINT - Which ranks the group has, as a number (group_rollup); 0 where the source did not say
--   dtype VARCHAR - Element type
--   size_bytes BIGINT bytes Message size
--   group_size INTEGER - Ranks in the group
--   start_ns BIGINT ns Start
--   duration_ns BIGINT ns Duration
--   overlap_ns BIGINT ns Part of it under compute of the same device
--   exposed_ns BIGINT ns The rest
--   algorithm_bandwidth DOUBLE bytes/s Message over duration
--   bus_bandwidth DOUBLE bytes/s What that means on the links
--   site_id BIGINT - Responsible source line
WITH calls AS (
    SELECT c.rank, c.event_id, coalesce(d.device, 'cpu') AS device, e.step, c.operation, c."group" AS group_name,
           coalesce((md5_number_lower(replace(c.group_ranks, ' ', '')) >> 11)::BIGINT, 0) AS members, c.dtype, c.size_bytes,
           c.group_size, e.start_ns, e.duration_ns, e.start_ns + e.duration_ns AS end_ns, e.site_id,
           d.device IS NOT NULL AS on_device, bool_or(d.device IS NOT NULL) OVER (PARTITION BY c.rank) AS has_device
    FROM collectives AS c
    JOIN events AS e ON e.rank = c.rank AND e.event_id = c.event_id
    LEFT JOIN device_tracks AS d ON d.rank = e.rank AND d.track_id = e.track_id
), ordered AS (
    SELECT rank, device, start_ns, end_ns,
           max(end_ns) OVER (PARTITION BY rank, device ORDER BY start_ns ROWS BETWEEN UNBOUNDED PRECEDING AND 1 PRECEDING) AS reached
    FROM work_intervals
    WHERE class = 'compute'
), extended AS (
    -- Each interval's part beyond everything before it: disjoint, in order, with the same union.
    SELECT rank, device, greatest(start_ns, coalesce(reached, start_ns)) AS start_ns, end_ns
    FROM ordered WHERE reached IS NULL OR end_ns > reached
), computing AS (
    SELECT *, sum(end_ns - start_ns) OVER (PARTITION BY rank, device ORDER BY start_ns) - (end_ns - start_ns) AS before_ns FROM extended
), measured AS (
    SELECT c.*, coalesce(b.before_ns + least(c.end_ns, b.end_ns) - b.start_ns, 0) - coalesce(a.before_ns + least(c.start_ns, a.end_ns) - a.start_ns, 0) AS overlap_ns
    FROM calls AS c
    ASOF LEFT JOIN computing AS a ON a.rank = c.rank AND a.device = c.device AND c.start_ns >= a.start_ns
    ASOF LEFT JOIN computing AS b ON b.rank = c.rank AND b.device = c.device AND c.end_ns >= b.start_ns
    WHERE c.on_device OR NOT c.has_device
)
SELECT m.rank, m.event_id, m.device, m.step, m.operation, m.group_name, m.members, m.dtype, m.size_bytes, m.group_size, m.start_ns, m.duration_ns,
       m.overlap_ns::BIGINT AS overlap_ns, (m.duration_ns - m.overlap_ns)::BIGINT AS exposed_ns,
       m.size_bytes / nullif(m.duration_ns, 0) * 1e9 AS algorithm_bandwidth,
       m.size_bytes / nullif(m.duration_ns, 0) * 1e9 * CASE
           WHEN m.group_size IS NULL THEN NULL
           WHEN m.operation = 'all_reduce' THEN 2.0 * (m.group_size - 1) / m.group_size
           WHEN m.operation IN ('all_gather', 'reduce_scatter', 'all_to_all') THEN (m.group_size - 1.0) / m.group_size
           ELSE 1.0 END AS bus_bandwidth,
       m.site_id
FROM measured AS m
ORDER BY m.rank, m.start_ns, m.event_id
