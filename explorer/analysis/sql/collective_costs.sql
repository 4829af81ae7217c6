-- collective_costs: each communication call or kernel of a rank: what it moved, how fast, how much of it compute hid, and its line.
-- Bandwidths are from this rank's own duration, waiting for others included; `collectives_matched` has the true latency.
-- Algorithm bandwidth is message over time; bus bandwidth multiplies it by 2(n-1)/n for all_reduce, (n-1)/n for all_gather,
-- reduce_scatter and all_to_all, 1 otherwise (the conventions of nccl-tests, PERFORMANCE.md).
-- Needs: collective_times, sites
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
--   file VARCHAR - File of the line
--   line INTEGER - Line number
--   code VARCHAR - Source text
SELECT c.*, s.file, s.line, s.code
FROM collective_times AS c
LEFT JOIN sites AS s USING (site_id)
ORDER BY c.rank, c.start_ns, c.event_id
