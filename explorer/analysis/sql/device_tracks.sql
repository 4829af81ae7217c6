-- device_tracks: which tracks belong to which device.
-- Needs: tracks
-- Columns
--   rank INTEGER - Process rank
--   track_id INTEGER - Track within the rank
--   device VARCHAR - Device as text, such as cuda:0
--   device_type VARCHAR - cuda, hip, xpu, mtia, npu, neuron, tpu ...
--   device_index INTEGER - Device number
--   stream VARCHAR - Label of the stream, engine or queue
SELECT rank, track_id,
       coalesce(device_type, 'device') || coalesce(':' || device_index, '') AS device,
       device_type, device_index, label AS stream
FROM tracks
WHERE kind IN ('stream', 'engine', 'queue') AND device_type IS DISTINCT FROM 'cpu'
