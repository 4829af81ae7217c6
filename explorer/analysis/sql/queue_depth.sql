-- queue_depth: how many device events were enqueued and not yet started on each stream, over the launches.
-- Needs: launches
-- Columns
--   rank INTEGER - Process rank
--   device VARCHAR - Device as text
--   stream VARCHAR - Label of the stream
--   launches BIGINT - Device events with a known launch
--   mean_depth DOUBLE - Mean depth at the launches, the new event included
--   max_depth BIGINT - Greatest depth
--   full_share DOUBLE - Part of the launches at a depth of 1024 or more, where CUDA blocks the host, 0 to 1
--   empty_share DOUBLE - Part of the launches onto an empty queue, 0 to 1: the device was waiting or about to
SELECT rank, device, stream, count(*) AS launches, avg(queue_depth) AS mean_depth, max(queue_depth) AS max_depth,
       avg((queue_depth >= 1024)::INT) AS full_share, avg((queue_depth = 1)::INT) AS empty_share
FROM launches
GROUP BY rank, device, stream
ORDER BY rank, device, stream
