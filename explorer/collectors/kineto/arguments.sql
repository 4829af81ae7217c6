-- arguments: The fields of each event's args that have a column or make a link, and everything else as attributes.
-- Needs: rows (row, ph, cat, id, args, rest), the decoded chunk
-- Columns
--   row               int64         number of the event in the chunk
--   correlation_id    int64         correlation of a launch and its device work
--   external_id       int64         number of the op that was running
--   stream            int64         device stream
--   device            int64         device number
--   size_bytes        int64  bytes  bytes moved or allocated
--   flops             int64  flop   as recorded
--   shapes            string        input shapes, JSON
--   dtypes            string        input dtypes, JSON
--   python_module_id  int64         number of the nn.Module instance of a python_function event
--   sequence_number   int64         autograd sequence number
--   forward_thread    int64         thread of the forward op
--   call_stack        string        user stack as one text, innermost first
--   address           int64         of an allocation
--   allocated_bytes   int64  bytes  after a memory event
--   reserved_bytes    int64  bytes  after a memory event
--   device_type       int64         c10::DeviceType of a memory event
--   memory_device     int64         device number of a memory event
--   label             string        name or labels of a metadata row
--   rank              int64         in merged traces
--   collective        list          name, group, description, ranks, in, out, size, dtype, sequence, destination, source
--   attributes        string        JSON object of everything without a column
WITH found AS (
    SELECT row, ph, cat, id, args, rest,
        json_extract_string(args, [
            '$.correlation', '$."External id"', '$."external id"', '$.stream', '$.device',
            '$.bytes', '$.Bytes', '$.flops', '$."Input Dims"', '$."Input dims"',
            '$."Input type"', '$."Python module id"', '$."Sequence number"', '$."Fwd thread id"', '$."Call stack"',
            '$.Addr', '$."Total Allocated"', '$."Total Reserved"', '$."Device Type"', '$."Device Id"',
            '$.name', '$.labels', '$.rank', '$."Collective name"', '$."Process Group Name"',
            '$."Process Group Description"', '$."Process Group Ranks"', '$."In msg nelems"', '$."Out msg nelems"',
            '$."Group size"', '$.dtype', '$.Seq', '$."Dst Rank"', '$."Src Rank"',
            '$.connection_id', '$.correlation_id', '$.stream_id', '$."Physic Stream Id"', '$."stream id"',
            '$."size(Byte)"'
        ]) AS v
    FROM rows

), typed AS (
    SELECT row, ph, cat, id, args, rest, v,
        TRY_CAST(coalesce(v[1], v[35], v[36]) AS BIGINT) AS correlation_id,
        TRY_CAST(coalesce(v[6], v[7], v[40]) AS BIGINT) AS size_bytes,
        coalesce(v[9], v[10]) AS shapes,
        v[11] AS dtypes
    FROM found
), bodies AS (
    SELECT *,
        CASE
            WHEN args IS NULL OR args = '{}' THEN ''
            WHEN ph = 'M' OR ph = 'C' THEN substr(args, 2, length(args) - 2)
            WHEN (v[1] IS NOT NULL AND v[1] <> correlation_id::VARCHAR)
                OR (v[6] IS NOT NULL AND v[6] IS DISTINCT FROM size_bytes::VARCHAR)
                OR (v[7] IS NOT NULL AND v[7] IS DISTINCT FROM size_bytes::VARCHAR)
                THEN substr(args, 2, length(args) - 2)
            WHEN v[1] IS NULL AND v[6] IS NULL AND v[7] IS NULL AND shapes IS NULL AND dtypes IS NULL
                THEN substr(args, 2, length(args) - 2)
            ELSE json_merge_patch(args, '{"correlation":null,"bytes":null,"Bytes":null,"Input Dims":null,"Input dims":null,"Input type":null}')[2:-2]
        END AS body
    FROM typed
)
SELECT
    row,
    correlation_id,
    TRY_CAST(coalesce(v[2], v[3]) AS BIGINT) AS external_id,
    TRY_CAST(coalesce(v[4], v[37], v[38], v[39]) AS BIGINT) AS stream,
    TRY_CAST(v[5] AS BIGINT) AS device,
    size_bytes,
    TRY_CAST(v[8] AS BIGINT) AS flops,
    shapes,
    dtypes,
    TRY_CAST(v[12] AS BIGINT) AS python_module_id,
    TRY_CAST(v[13] AS BIGINT) AS sequence_number,
    TRY_CAST(v[14] AS BIGINT) AS forward_thread,
    v[15] AS call_stack,
    TRY_CAST(v[16] AS BIGINT) AS address,
    TRY_CAST(v[17] AS BIGINT) AS allocated_bytes,
    TRY_CAST(v[18] AS BIGINT) AS reserved_bytes,
    TRY_CAST(v[19] AS BIGINT) AS device_type,
    TRY_CAST(v[20] AS BIGINT) AS memory_device,
    coalesce(v[21], v[22]) AS label,
    TRY_CAST(v[23] AS BIGINT) AS rank,
    CASE WHEN v[24] IS NOT NULL OR v[25] IS NOT NULL THEN v[24:34] END AS collective,
    nullif('{' || concat_ws(',',
        CASE WHEN cat IS NOT NULL THEN '"cat":' || to_json(cat) END,
        CASE WHEN ph <> 'X' THEN '"ph":' || to_json(ph) END,
        CASE WHEN id IS NOT NULL AND ph NOT IN ('s', 't', 'f') THEN '"id":' || id END,
        rest,
        nullif(trim(body), '')
    ) || '}', '{}') AS attributes
FROM bodies
ORDER BY row
