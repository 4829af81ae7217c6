-- rank_devices: the devices that did recorded work in each rank; cpu for a rank without device work.
-- Needs: track_extents, device_tracks, rank_extent
-- Columns
--   rank INTEGER - Process rank
--   device VARCHAR - Device as text
--   place BIGINT - Number of the device over all ranks, from 1: sorts faster than the text
SELECT rank, device, row_number() OVER (ORDER BY rank, device) AS place
FROM (
    SELECT DISTINCT rank, device FROM track_extents JOIN device_tracks USING (rank, track_id)
    WHERE category IN ('kernel', 'copy', 'fill', 'collective', 'instruction', 'dma')
    UNION ALL
    SELECT rank, 'cpu' AS device FROM rank_extent WHERE NOT has_device_work)
