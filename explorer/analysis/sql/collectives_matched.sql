-- collectives_matched: communication calls of the ranks, those of one call under one match.
-- Matched by group and sequence number where the source had it; else by the place of the call in its group within a step
-- (or in the recording, without steps), with confidence 'order'. Sends and receives are matched in pairs, in order. Groups of
-- one name in different ranks are different groups; a rank that does not know its group's ranks joins the only group of the name.
-- Needs: rank_collectives
-- Columns
--   match_id BIGINT - The call; the same for all its ranks
--   rank INTEGER - Process rank
--   event_id BIGINT - Its event
--   step INTEGER - Step it began in on this rank
--   group_name VARCHAR - Process group
--   members BIGINT - Which ranks the group has, as a number (group_rollup); 0 where no rank knows
--   group_description VARCHAR - What the group is for
--   operation VARCHAR - Operation; send_recv for a matched pair
--   dtype VARCHAR - Element type
--   size_bytes BIGINT bytes Message size on this rank
--   group_size INTEGER - Ranks in the group; those seen where the source did not say
--   peer INTEGER - Other rank of a point-to-point call
--   start_ns BIGINT ns Start, on the rank's own clock
--   end_ns BIGINT ns End, on the rank's own clock
--   busy_ns BIGINT ns Time within it in which the rank computed
--   site_id BIGINT - Responsible line
--   confidence VARCHAR - sequence or order
--   ranks_seen BIGINT - Ranks that recorded this call
WITH named AS (
    SELECT group_name, CASE WHEN count(DISTINCT members) FILTER (members <> 0) = 1 THEN max(members) ELSE 0 END AS only_members
    FROM rank_collectives
    GROUP BY group_name
), pairs AS (
    SELECT c.* REPLACE (CASE WHEN c.members = 0 THEN n.only_members ELSE c.members END AS members),
           operation IN ('send', 'recv', 'isend', 'irecv') AND peer IS NOT NULL AS is_pair,
           CASE WHEN operation IN ('send', 'isend') THEN rank ELSE peer END AS from_rank,
           CASE WHEN operation IN ('send', 'isend') THEN peer ELSE rank END AS to_rank
    FROM rank_collectives AS c
    JOIN named AS n USING (group_name)
), keyed AS (
    SELECT *,
           CASE WHEN is_pair THEN 'pair' WHEN sequence IS NOT NULL THEN 'sequence' WHEN step IS NOT NULL THEN 'step' ELSE 'position' END AS basis,
           CASE WHEN is_pair THEN NULL WHEN sequence IS NOT NULL THEN sequence ELSE coalesce(step, 0) END AS major,
           CASE WHEN is_pair THEN NULL ELSE operation END AS kind
    FROM pairs
), numbered AS (
    SELECT *, row_number() OVER (
        PARTITION BY rank, group_name, members, basis, major, kind, CASE WHEN is_pair THEN from_rank END, CASE WHEN is_pair THEN to_rank END
        ORDER BY start_ns, event_id
    ) AS minor
    FROM keyed
), matched AS (
    SELECT *, dense_rank() OVER (
        ORDER BY group_name, members, basis, major, kind, CASE WHEN is_pair THEN from_rank END, CASE WHEN is_pair THEN to_rank END, minor
    ) AS match_id
    FROM numbered
)
SELECT match_id, rank, event_id, step, group_name, members, group_description,
       CASE WHEN is_pair THEN 'send_recv' ELSE operation END AS operation, dtype, size_bytes,
       coalesce(CASE WHEN is_pair THEN 2 END, group_size, count(*) OVER (PARTITION BY match_id))::INTEGER AS group_size,
       peer, start_ns, end_ns, busy_ns, site_id, CASE WHEN basis = 'sequence' THEN 'sequence' ELSE 'order' END AS confidence,
       count(*) OVER (PARTITION BY match_id) AS ranks_seen
FROM matched
ORDER BY match_id, rank
