-- group_bandwidth: communication by group, operation and size: how long the transfer takes, how fast it is, how much is
-- waiting. Algorithm bandwidth is message size over true latency; bus bandwidth multiplies it by 2(n-1)/n for all-reduce,
-- (n-1)/n for all-gather, reduce-scatter and all-to-all, and 1 for the others (the NCCL tests' convention), so that it
-- compares with what a link can do.
-- Needs: collective_waits
-- Columns
--   group_name VARCHAR - Process group
--   members BIGINT - Which ranks the group has, as a number (group_rollup); 0 where no rank knows
--   operation VARCHAR - Operation
--   group_size INTEGER - Ranks in the group
--   size_bytes BIGINT bytes Message size
--   calls BIGINT - Matched calls
--   latency_ns BIGINT ns Median true latency (last arrival to the last end)
--   wait_ns BIGINT ns Mean wait per rank and call
--   transfer_share DOUBLE - Transfer over transfer and wait, 0 to 1
--   algorithm_bandwidth DOUBLE bytes/s Size over median latency; null without a size
--   bus_bandwidth DOUBLE bytes/s The same for the links; null without a size
WITH calls AS (
    SELECT match_id, any_value(group_name) AS group_name, any_value(members) AS members, any_value(operation) AS operation,
           max(group_size) AS group_size, max(size_bytes) AS size_bytes, max(end_ns) - max(last_arrival_ns) AS latency_ns,
           avg(wait_ns) AS wait_ns, sum(wait_ns) AS waits, sum(transfer_ns) AS transfers
    FROM collective_waits
    GROUP BY match_id
), grouped AS (
    SELECT group_name, members, operation, group_size, size_bytes, count(*) AS calls,
           greatest(median(latency_ns), 0)::BIGINT AS latency_ns, round(avg(wait_ns))::BIGINT AS wait_ns,
           coalesce(sum(transfers) / nullif(sum(transfers) + sum(waits), 0), 1.0) AS transfer_share
    FROM calls
    GROUP BY group_name, members, operation, group_size, size_bytes
)
SELECT group_name, members, operation, group_size, size_bytes, calls, latency_ns, wait_ns, transfer_share,
       size_bytes * 1e9 / nullif(latency_ns, 0) AS algorithm_bandwidth,
       size_bytes * 1e9 / nullif(latency_ns, 0) * CASE
           WHEN operation = 'all_reduce' THEN 2.0 * (group_size - 1) / group_size
           WHEN operation IN ('all_gather', 'reduce_scatter', 'all_to_all') THEN (group_size - 1.0) / group_size
           ELSE 1.0 END AS bus_bandwidth
FROM grouped
ORDER BY calls * latency_ns DESC, group_name, members, operation, size_bytes
