-- pair_links: the matrix of messages between two ranks, slowest first: sends and receives, and calls of groups of two.
-- At most $most pairs.
-- Needs: collective_waits
-- Columns
--   ranks INTEGER[] - The two ranks
--   calls BIGINT - Matched calls
--   total_bytes BIGINT bytes What they moved; null where no size is known
--   latency_ns BIGINT ns Median time from the last arrival to the last end
--   bandwidth DOUBLE bytes/s Bytes of all calls over the sum of their latencies; null without sizes
WITH calls AS (
    SELECT match_id, list_sort(list(rank)) AS ranks, max(size_bytes) AS size_bytes,
           greatest(0, max(end_ns) - max(last_arrival_ns)) AS latency_ns
    FROM collective_waits
    WHERE ranks_seen = 2 AND group_size = 2
    GROUP BY match_id
)
SELECT ranks, count(*) AS calls, sum(size_bytes)::BIGINT AS total_bytes, median(latency_ns)::BIGINT AS latency_ns,
       sum(size_bytes) * 1e9 / nullif(sum(latency_ns) FILTER (size_bytes IS NOT NULL), 0) AS bandwidth
FROM calls
GROUP BY ranks
ORDER BY bandwidth NULLS LAST, latency_ns DESC, ranks
LIMIT $most
