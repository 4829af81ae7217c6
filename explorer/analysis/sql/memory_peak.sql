-- memory_peak: what is alive when allocated memory is highest, by line, op, module and category, largest first.
-- Only blocks whose allocation was recorded can be told apart; the row without anything is what was there before.
-- Needs: memory_blocks, memory_summary, events, modules, sites
-- Columns
--   rank INTEGER - Process rank
--   device VARCHAR - cpu, cuda:0, neuron:0 ...
--   site_id BIGINT - Source line that allocated it
--   file VARCHAR - File of the line
--   line INTEGER - Line number
--   code VARCHAR - Source text
--   op VARCHAR - Op that allocated it
--   module VARCHAR - Path of the nn.Module it was allocated in
--   category VARCHAR - parameter, gradient, activation, optimizer_state, temporary, input, unknown, or before_recording
--   blocks BIGINT - How many; null for what was there before
--   size_bytes BIGINT bytes Their size
--   share DOUBLE - Part of the peak, 0 to 1
WITH alive AS (
    SELECT b.rank, b.device, b.site_id, e.name AS op, m.path AS module, b.category, count(*) AS blocks, sum(b.size_bytes)::BIGINT AS size_bytes
    FROM memory_blocks AS b
    JOIN memory_summary AS p ON p.rank = b.rank AND p.device = b.device
    LEFT JOIN events AS e ON e.rank = b.rank AND e.event_id = b.op_id
    LEFT JOIN modules AS m ON m.module_id = e.module_id
    WHERE b.allocated_ns <= p.peak_ns AND (b.freed_ns IS NULL OR b.freed_ns > p.peak_ns)
    GROUP BY ALL
), rest AS (
    SELECT p.rank, p.device, NULL::BIGINT AS site_id, NULL AS op, NULL AS module, 'before_recording' AS category, NULL::BIGINT AS blocks,
           p.peak_bytes - coalesce(sum(a.size_bytes), 0)::BIGINT AS size_bytes
    FROM memory_summary AS p
    LEFT JOIN alive AS a ON a.rank = p.rank AND a.device = p.device
    GROUP BY p.rank, p.device, p.peak_bytes
), both_parts AS (
    SELECT * FROM alive
    UNION ALL
    SELECT * FROM rest WHERE size_bytes > 0
)
SELECT x.rank, x.device, x.site_id, s.file, s.line, s.code, x.op, x.module, x.category, x.blocks, x.size_bytes,
       x.size_bytes / nullif(p.peak_bytes, 0) AS share
FROM both_parts AS x
JOIN memory_summary AS p ON p.rank = x.rank AND p.device = x.device
LEFT JOIN sites AS s ON s.site_id = x.site_id
ORDER BY x.rank, x.device, x.size_bytes DESC, s.file, s.line, x.op
