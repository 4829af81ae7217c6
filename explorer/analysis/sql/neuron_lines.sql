-- neuron_lines: what each source line did on the NeuronCores: instructions, engine time, transfers, memory use, waits.
-- An instruction of several lines is shared between them, so sums over lines equal sums over instructions.
-- Needs: neuron.Instruction, neuron.EventOffsets, neuron.DmaPacketAggregated, event_lines, sites
-- Columns
--   rank INTEGER - Process rank
--   site_id BIGINT - Source line; null: no line is known
--   file VARCHAR - File of the line
--   line INTEGER - Line number
--   function VARCHAR - Function or kernel
--   instructions DOUBLE count Instructions, shared ones in part
--   engine_ns DOUBLE ns Sum of instruction durations on all engines
--   tensor_ns DOUBLE ns Of it on the Tensor engine
--   vector_ns DOUBLE ns Of it on the Vector engine
--   scalar_ns DOUBLE ns Of it on the Scalar engine
--   gpsimd_ns DOUBLE ns Of it on the GpSimd engine
--   sync_ns DOUBLE ns Of it on the Sync engine
--   wait_ns DOUBLE ns Waits for events before its instructions (one wait may be counted by several)
--   flops DOUBLE flop Matrix work, raw
--   transfers DOUBLE count DMA blocks that feed or drain its instructions
--   transfer_bytes DOUBLE bytes Their bytes
--   transfer_ns DOUBLE ns Their durations
--   sbuf_bytes DOUBLE bytes SBUF bytes its instructions read and wrote
--   psum_bytes DOUBLE bytes PSUM bytes its instructions read and wrote
--   spill_bytes DOUBLE bytes Bytes its instructions saved to and reloaded from spill space
WITH rows AS (
    SELECT i.rank, i.id + o.id_offset AS event_id, lower(i.engine) AS engine, coalesce(i.duration_ns, i.end_ts - i.start_ts) AS ns,
           i.evt_wait_time_ns AS wait, i.raw_flops AS flops, 1 AS is_instruction, 0 AS moved,
           coalesce(i.sbuf_read_bytes, 0) + coalesce(i.sbuf_write_bytes, 0) AS sbuf,
           coalesce(i.psum_read_bytes, 0) + coalesce(i.psum_write_bytes, 0) AS psum,
           coalesce(i.spill_save_bytes, 0) + coalesce(i.spill_reload_bytes, 0) AS spill
    FROM neuron.Instruction AS i JOIN neuron.EventOffsets AS o
      ON o.rank = i.rank AND o.profile = i.profile AND o.table_name = 'Instruction'
    UNION ALL
    SELECT d.rank, d.id + o.id_offset, '', coalesce(d.duration_ns, d.end_ts - d.start_ts), NULL, NULL, 0, d.transfer_bytes, 0, 0, 0
    FROM neuron.DmaPacketAggregated AS d JOIN neuron.EventOffsets AS o
      ON o.rank = d.rank AND o.profile = d.profile AND o.table_name = 'DmaPacketAggregated'
), shared AS (
    SELECT r.*, l.site_id, coalesce(l.share, 1.0) AS share
    FROM rows AS r LEFT JOIN event_lines AS l ON l.rank = r.rank AND l.event_id = r.event_id
), sums AS (
    SELECT rank, site_id, sum(share * is_instruction) AS instructions,
           coalesce(sum(share * ns) FILTER (WHERE is_instruction = 1), 0) AS engine_ns,
           coalesce(sum(share * ns) FILTER (WHERE engine IN ('tensor', 'pe')), 0) AS tensor_ns,
           coalesce(sum(share * ns) FILTER (WHERE engine IN ('vector', 'dve')), 0) AS vector_ns,
           coalesce(sum(share * ns) FILTER (WHERE engine IN ('scalar', 'act', 'activation')), 0) AS scalar_ns,
           coalesce(sum(share * ns) FILTER (WHERE engine IN ('gpsimd', 'pool')), 0) AS gpsimd_ns,
           coalesce(sum(share * ns) FILTER (WHERE engine IN ('sync', 'sp')), 0) AS sync_ns,
           coalesce(sum(share * wait), 0) AS wait_ns, coalesce(sum(share * flops), 0) AS flops,
           sum(share * (1 - is_instruction)) AS transfers, sum(share * moved) AS transfer_bytes,
           coalesce(sum(share * ns) FILTER (WHERE is_instruction = 0), 0) AS transfer_ns,
           sum(share * sbuf) AS sbuf_bytes, sum(share * psum) AS psum_bytes, sum(share * spill) AS spill_bytes
    FROM shared GROUP BY rank, site_id
)
SELECT s.rank, s.site_id, t.file, t.line, t.function, s.* EXCLUDE (rank, site_id)
FROM sums AS s LEFT JOIN sites AS t USING (site_id)
ORDER BY s.engine_ns + s.transfer_ns DESC, s.site_id
