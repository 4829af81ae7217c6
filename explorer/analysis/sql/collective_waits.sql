-- collective_waits: for each rank of each matched call: when it arrived, how long it waited for the others, how long the
-- transfer took. Times are aligned to the reference rank's clock. The true latency of a call is from the last arrival to
-- the end; what an early rank records beyond that is waiting.
-- Needs: collectives_matched, rank_clocks
-- Columns
--   match_id BIGINT - The call (collectives_matched)
--   rank INTEGER - Process rank
--   event_id BIGINT - Its event
--   step INTEGER - Step it began in
--   group_name VARCHAR - Process group
--   members BIGINT - Which ranks the group has, as a number (group_rollup); 0 where no rank knows
--   operation VARCHAR - Operation
--   size_bytes BIGINT bytes Message size
--   group_size INTEGER - Ranks in the group
--   site_id BIGINT - Responsible line
--   start_ns BIGINT ns When this rank arrived, on its own clock
--   arrival_ns BIGINT ns When this rank arrived, aligned
--   last_arrival_ns BIGINT ns When the last rank arrived, aligned
--   end_ns BIGINT ns When it ended on this rank, aligned
--   wait_ns BIGINT ns From this rank's arrival to the last one's, within this rank's call
--   exposed_wait_ns BIGINT ns The part of wait_ns in which this rank computed nothing, at least
--   transfer_ns BIGINT ns From the last arrival to the end on this rank
--   last_rank INTEGER - The rank that arrived last
--   late_ns BIGINT ns How much later than the median rank the last one arrived
--   residual_ns DOUBLE ns What the clocks are uncertain by for this call; smaller waits mean nothing
--   is_last BOOLEAN - It arrived last, or nearer to the last than to the median rank, by more than the clocks are uncertain
--   confidence VARCHAR - sequence or order (collectives_matched)
--   ranks_seen BIGINT - Ranks that recorded this call
WITH aligned AS (
    SELECT m.*, coalesce(c.residual_ns, 9e18) AS residual_ns,
           m.start_ns - round(c.offset_ns + c.drift_ppb * (m.start_ns - c.reference_ns) / 1e9)::BIGINT AS arrival_ns,
           m.end_ns - round(c.offset_ns + c.drift_ppb * (m.end_ns - c.reference_ns) / 1e9)::BIGINT AS aligned_end_ns
    FROM collectives_matched AS m
    JOIN rank_clocks AS c USING (rank)
), whole AS (
    SELECT match_id, max(arrival_ns) AS last_arrival_ns, arg_max(rank, (arrival_ns, -rank)) AS last_rank,
           max(arrival_ns) - quantile_disc(arrival_ns, 0.5) AS late_ns, max(residual_ns) AS residual_ns
    FROM aligned
    GROUP BY match_id
)
SELECT a.match_id, a.rank, a.event_id, a.step, a.group_name, a.members, a.operation, a.size_bytes, a.group_size, a.site_id,
       a.start_ns, a.arrival_ns, w.last_arrival_ns, a.aligned_end_ns AS end_ns,
       greatest(0, least(w.last_arrival_ns, a.aligned_end_ns) - a.arrival_ns) AS wait_ns,
       greatest(0, least(w.last_arrival_ns, a.aligned_end_ns) - a.arrival_ns - a.busy_ns) AS exposed_wait_ns,
       greatest(0, a.aligned_end_ns - greatest(w.last_arrival_ns, a.arrival_ns)) AS transfer_ns,
       w.last_rank, w.late_ns, w.residual_ns,
       a.ranks_seen > 1 AND a.arrival_ns - (w.last_arrival_ns - w.late_ns) > greatest(w.residual_ns, w.late_ns / 2) AS is_last, a.confidence, a.ranks_seen
FROM aligned AS a
JOIN whole AS w USING (match_id)
ORDER BY a.match_id, a.rank
