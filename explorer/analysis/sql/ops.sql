-- ops: framework ops by name: calls, host time, device time, launches.
-- Needs: events, device_tracks, rank_info
-- Columns
--   name VARCHAR - Op name
--   calls BIGINT - How many
--   total_ns BIGINT ns Sum of host durations, enclosed ops included
--   self_ns BIGINT ns Sum of host durations without enclosed events
--   corrected_self_ns BIGINT ns self_ns without what recording these ops cost; never less than a tenth of self_ns
--   mean_ns BIGINT ns Mean host duration, rounded
--   p50_ns BIGINT ns Median host duration
--   p95_ns BIGINT ns 95th percentile of the host duration (nearest rank)
--   max_ns BIGINT ns Longest host duration
--   device_ns BIGINT ns Device time of the work this op itself launched (innermost op)
--   kernels BIGINT - Device events this op itself launched
--   share DOUBLE - Part of the host time of all ops (by self_ns), 0 to 1
--   device_share DOUBLE - Part of the device time of all ops, 0 to 1
WITH device AS (
    SELECT e.rank, e.op_id, sum(e.duration_ns)::BIGINT AS device_ns, count(*) AS kernels
    FROM events AS e
    JOIN device_tracks USING (rank, track_id)
    WHERE e.op_id IS NOT NULL AND e.category IN ('kernel', 'copy', 'fill', 'collective', 'instruction', 'dma')
    GROUP BY e.rank, e.op_id
), host AS (
    SELECT e.name, e.duration_ns, e.self_ns, d.device_ns, d.kernels, i.op_cost_ns
    FROM events AS e
    LEFT JOIN rank_info AS i ON i.rank = e.rank
    LEFT JOIN device AS d ON d.rank = e.rank AND d.op_id = e.event_id
    WHERE e.category = 'op'
)
SELECT name, count(*) AS calls, sum(duration_ns)::BIGINT AS total_ns, sum(self_ns)::BIGINT AS self_ns,
       round(greatest(sum(self_ns) - sum(op_cost_ns), sum(self_ns) / 10))::BIGINT AS corrected_self_ns, round(avg(duration_ns))::BIGINT AS mean_ns, quantile_disc(duration_ns, 0.5) AS p50_ns, quantile_disc(duration_ns, 0.95) AS p95_ns,
       max(duration_ns) AS max_ns, coalesce(sum(device_ns), 0)::BIGINT AS device_ns,
       coalesce(sum(kernels), 0)::BIGINT AS kernels,
       coalesce(sum(self_ns) / nullif(sum(sum(self_ns)) OVER (), 0), 0.0) AS share,
       coalesce(coalesce(sum(device_ns), 0) / nullif(sum(coalesce(sum(device_ns), 0)) OVER (), 0), 0.0) AS device_share
FROM host
GROUP BY name
ORDER BY device_ns DESC, self_ns DESC, name
