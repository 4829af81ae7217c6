-- rank_devices: the devices that did recorded work in each rank; cpu for a rank without device work.
-- Needs: device_events, rank_extent
-- Columns
--   rank INTEGER - Process rank
--   device VARCHAR - Device as text
SELECT DISTINCT rank, device FROM device_events
UNION ALL
SELECT rank, 'cpu' AS device FROM rank_extent WHERE NOT has_device_work
