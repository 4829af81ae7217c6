-- host_boundaries: where host activities of each rank begin and end; the input of `host_breakdown`, `idle_breakdown` and
-- `gaps`.
-- The running sums of the two columns up to an instant tell what the rank was doing: their digits count the activities of
-- each class, and the highest digit that is not 0 is the class (`host_classes` names and orders them; `blocking` goes
-- before `working`). A call inside an op takes the op's place while it runs, an op inside an op changes nothing.
-- Needs: events, device_tracks, host_states, host_classes
-- Columns
--   rank INTEGER - Process rank
--   at_ns BIGINT ns When
--   blocking BIGINT - Change of the counter of classes that stop everything else, digits to base 32768
--   working BIGINT - Change of the counter of the other classes, digits to base 4096
WITH host AS (
    SELECT e.rank, e.event_id, e.parent_id, e.start_ns, e.start_ns + e.duration_ns AS end_ns, c.class, c.blocking, c.working,
           c.nests
    FROM events AS e
    JOIN host_classes AS c USING (category)
    ANTI JOIN device_tracks AS d ON d.rank = e.rank AND d.track_id = e.track_id
), lined AS (
    -- Line states follow each other without a gap; only where a chain of them begins and ends does anything change.
    SELECT rank, start_ns, start_ns + duration_ns AS end_ns,
           lag(start_ns + duration_ns) OVER chain AS before_ns, lead(start_ns) OVER chain AS after_ns
    FROM host_states
    WHERE site_id IS NOT NULL
    WINDOW chain AS (PARTITION BY rank, track_id ORDER BY start_ns)
), placed AS (
    SELECT h.rank, h.start_ns, h.end_ns, h.blocking, h.working - CASE WHEN h.nests AND p.nests THEN p.working ELSE 0 END AS working
    FROM host AS h
    LEFT JOIN host AS p ON p.rank = h.rank AND p.event_id = h.parent_id
    WHERE h.end_ns > h.start_ns AND h.class IS DISTINCT FROM p.class
)
SELECT rank, start_ns AS at_ns, blocking, working FROM placed
UNION ALL
SELECT rank, end_ns, -blocking, -working FROM placed
UNION ALL
SELECT rank, start_ns, 0::BIGINT, 1::BIGINT FROM lined WHERE before_ns IS DISTINCT FROM start_ns
UNION ALL
SELECT rank, end_ns, 0::BIGINT, -1::BIGINT FROM lined WHERE after_ns IS DISTINCT FROM end_ns
