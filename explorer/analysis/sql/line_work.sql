-- line_work: what each source line's work amounts to: floating point operations and memory allocated.
-- Needs: events, event_lines, memory_events
-- Columns
--   site_id BIGINT - Source line (sites)
--   flops DOUBLE flop Floating point operations of the events it is responsible for; null where none is known
--   allocated_bytes BIGINT bytes Bytes it allocated in all; null where no allocation is known
WITH computed AS (
    SELECT l.site_id, sum(l.share * e.flops) AS flops
    FROM events AS e
    JOIN event_lines AS l USING (rank, event_id)
    WHERE e.flops > 0
    GROUP BY l.site_id
), allocated AS (
    SELECT site_id, sum(size_bytes)::BIGINT AS allocated_bytes
    FROM memory_events
    WHERE action = 'alloc' AND site_id IS NOT NULL
    GROUP BY site_id
)
SELECT coalesce(c.site_id, a.site_id) AS site_id, c.flops, a.allocated_bytes
FROM computed AS c
FULL JOIN allocated AS a ON a.site_id = c.site_id
