-- rank_extent: from when to when each rank was recorded, by its first and last event.
-- Profiler overhead rows and rows of unknown kind do not widen it.
-- Needs: track_extents, device_tracks
-- Columns
--   rank INTEGER - Process rank
--   start_ns BIGINT ns Start of the first event
--   end_ns BIGINT ns End of the last event
--   has_device_work BOOLEAN - The rank holds kernels, copies, fills, device collectives, instructions or DMA on a device
SELECT e.rank, min(e.start_ns) AS start_ns, max(e.end_ns) AS end_ns,
       bool_or(d.track_id IS NOT NULL AND category IN ('kernel', 'copy', 'fill', 'collective', 'instruction', 'dma'))
           AS has_device_work
FROM track_extents AS e
LEFT JOIN device_tracks AS d USING (rank, track_id)
WHERE category NOT IN ('overhead', 'other')
GROUP BY e.rank
