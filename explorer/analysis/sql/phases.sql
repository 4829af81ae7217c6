-- phases: host and device time of each phase of each step.
-- A device event has the phase of the op that launched it. Device times are unions per device, so work that overlaps inside a phase
-- counts once; phases themselves may overlap on a device.
-- Needs: events, device_events, device_tracks
-- Columns
--   rank INTEGER - Process rank
--   step INTEGER - Step; null outside steps
--   phase VARCHAR - forward, backward, optimizer, data, evaluation, prefill, decode or other; null where unknown
--   host_ns BIGINT ns Host time of ops, runtime calls, waits and data loading (by self_ns, so nothing counts twice)
--   sync_ns BIGINT ns Part of it waiting for a device
--   device_ns BIGINT ns Device time, union per device, summed over devices
--   communication_ns BIGINT ns Union of its collectives on devices
--   ops BIGINT - Framework ops
--   kernels BIGINT - Device events
WITH host AS (
    SELECT rank, step, phase, sum(self_ns)::BIGINT AS host_ns, coalesce(sum(self_ns) FILTER (category = 'sync'), 0)::BIGINT AS sync_ns,
           count(*) FILTER (category = 'op') AS ops
    FROM events
    ANTI JOIN device_tracks USING (rank, track_id)
    WHERE category IN ('op', 'runtime', 'sync', 'data', 'compile', 'collective', 'io')
    GROUP BY ALL
), placed AS (
    SELECT rank, step, phase, device, category, start_ns, end_ns,
           max(end_ns) OVER (PARTITION BY rank, step, phase, device ORDER BY start_ns ROWS BETWEEN UNBOUNDED PRECEDING AND 1 PRECEDING) AS reached,
           max(end_ns) FILTER (category = 'collective') OVER (PARTITION BY rank, step, phase, device ORDER BY start_ns ROWS BETWEEN UNBOUNDED PRECEDING AND 1 PRECEDING) AS talked
    FROM device_events
), device AS (
    SELECT rank, step, phase, sum(greatest(end_ns - greatest(start_ns, coalesce(reached, start_ns)), 0))::BIGINT AS device_ns,
           coalesce(sum(greatest(end_ns - greatest(start_ns, coalesce(talked, start_ns)), 0)) FILTER (category = 'collective'), 0)::BIGINT AS communication_ns,
           count(*) AS kernels
    FROM placed
    GROUP BY ALL
)
SELECT k.rank, k.step, k.phase, coalesce(h.host_ns, 0) AS host_ns, coalesce(h.sync_ns, 0) AS sync_ns, coalesce(d.device_ns, 0) AS device_ns,
       coalesce(d.communication_ns, 0) AS communication_ns, coalesce(h.ops, 0) AS ops, coalesce(d.kernels, 0) AS kernels
FROM (SELECT rank, step, phase FROM host UNION SELECT rank, step, phase FROM device) AS k
LEFT JOIN host AS h ON h.rank = k.rank AND h.step IS NOT DISTINCT FROM k.step AND h.phase IS NOT DISTINCT FROM k.phase
LEFT JOIN device AS d ON d.rank = k.rank AND d.step IS NOT DISTINCT FROM k.step AND d.phase IS NOT DISTINCT FROM k.phase
ORDER BY k.rank, k.step, host_ns + device_ns DESC, k.phase
