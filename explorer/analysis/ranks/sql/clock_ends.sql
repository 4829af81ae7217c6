-- clock_ends: the ends of calls that all their ranks end together, on each rank's own clock: what clocks are fitted to.
-- At most $most calls, chosen by a hash of their number, so that the same run gives the same choice.
-- Needs: collectives_matched
-- Columns
--   match_id BIGINT - The call
--   rank INTEGER - Process rank
--   end_ns BIGINT ns When it ended on this rank
WITH ends AS (
    SELECT match_id, rank, end_ns FROM collectives_matched
    WHERE ranks_seen > 1 AND operation IN ('all_reduce', 'all_gather', 'reduce_scatter', 'all_to_all', 'barrier')
), chosen AS (
    SELECT match_id FROM (SELECT DISTINCT match_id FROM ends)
    QUALIFY row_number() OVER (ORDER BY hash(match_id)) <= $most
)
SELECT match_id, rank, end_ns FROM ends SEMI JOIN chosen USING (match_id) ORDER BY match_id, rank
