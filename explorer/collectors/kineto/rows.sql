-- rows: Every field of each event that has a column or makes a link, and everything else as attributes.
-- Needs: pieces (piece), one event per row as strict JSON
-- Columns
--   ph                string        phase letter
--   cat               string        category as the source gave it
--   name              string        as recorded
--   pid               string        process, number or text
--   tid               string        thread, number or text
--   has_ts            bool          whether there is a start; its digits are taken from the text itself
--   has_dur           bool          whether there is a duration
--   id                string        number or text of a flow or async event
--   ident             int64         the id as a number: its own where it is one, else a hash of its text
--   correlation_id    int64         correlation of a launch and its device work
--   external_id       int64         number of the op that was running
--   stream            int64         device stream
--   device            int64         device number
--   size_bytes        int64  bytes  bytes moved or allocated
--   flops             int64  flop   as recorded
--   shapes            string        input shapes, JSON
--   dtypes            string        input dtypes, JSON
--   sequence_number   int64         autograd sequence number
--   forward_thread    int64         thread of the forward op
--   call_stack        string        user stack as one text, innermost first; or sf: and a key of the top-level stackFrames
--   address           int64         of an allocation
--   allocated_bytes   int64  bytes  after a memory event
--   reserved_bytes    int64  bytes  after a memory event
--   device_type       int64         c10::DeviceType of a memory event
--   memory_device     int64         device number of a memory event
--   label             string        name or labels of a metadata row
--   collective        list          name, group, description, ranks, in, out, size, dtype, sequence, destination, source
--   args              string        args of counters and metadata as JSON
--   odd               string        the whole row where it is no object
--   rest              string        JSON object of the members without a column, null where there are none
--   body              string        JSON object of the args without a column
WITH top AS (
    SELECT piece, json_extract_string(piece, ['$.ph', '$.cat', '$.name', '$.pid', '$.tid', '$.id', '$.ts', '$.dur', '$.args', '$.sf']) AS t
    FROM pieces
), found AS (
    SELECT piece, t,
        CASE WHEN t[2] IS DISTINCT FROM 'python_function' AND t[2] IS DISTINCT FROM 'ac2g' THEN
            json_extract_string(piece, [
                '$.args.correlation', '$.args."External id"', '$.args."external id"', '$.args.stream', '$.args.device',
                '$.args.bytes', '$.args.Bytes', '$.args.flops', '$.args."Input Dims"', '$.args."Input dims"',
                '$.args."Input type"', '$.args."Sequence number"', '$.args."Fwd thread id"', '$.args."Call stack"',
                '$.args."Collective name"', '$.args."Process Group Name"', '$.args."size(Byte)"', '$.args.connection_id',
                '$.args.correlation_id', '$.args.stream_id', '$.args."Physic Stream Id"', '$.args."stream id"'
            ])
        END AS v,
        CASE WHEN t[1] IN ('M', 'C') THEN t[9] END AS args,
        CASE WHEN t[1] = 'M' THEN json_extract_string(piece, ['$.args.name', '$.args.labels']) END AS m,
        CASE WHEN t[3] = '[memory]' THEN
            json_extract_string(piece, ['$.args.Addr', '$.args."Total Allocated"', '$.args."Total Reserved"', '$.args."Device Type"', '$.args."Device Id"'])
        END AS y,
        CASE WHEN t[1] IS NULL AND json_type(piece) <> 'OBJECT' THEN piece END AS odd
    FROM top
), typed AS (
    SELECT piece, t, v, args, m, y, odd,
        TRY_CAST(coalesce(v[1], v[18], v[19]) AS BIGINT) AS correlation_id,
        TRY_CAST(coalesce(v[6], v[7], v[17]) AS BIGINT) AS size_bytes,
        coalesce(v[9], v[10]) AS shapes,
        v[11] AS dtypes
    FROM found
)
SELECT
    t[1] AS ph, t[2] AS cat, t[3] AS name, t[4] AS pid, t[5] AS tid,
    t[7] IS NOT NULL AS has_ts,
    t[8] IS NOT NULL AS has_dur,
    t[6] AS id,
    CASE WHEN t[6] IS NOT NULL THEN coalesce(TRY_CAST(t[6] AS BIGINT), (hash(t[6]) >> 1)::BIGINT) END AS ident,
    correlation_id,
    TRY_CAST(coalesce(v[2], v[3]) AS BIGINT) AS external_id,
    TRY_CAST(coalesce(v[4], v[20], v[21], v[22]) AS BIGINT) AS stream,
    TRY_CAST(v[5] AS BIGINT) AS device,
    size_bytes,
    TRY_CAST(v[8] AS BIGINT) AS flops,
    shapes,
    dtypes,
    TRY_CAST(v[12] AS BIGINT) AS sequence_number,
    TRY_CAST(v[13] AS BIGINT) AS forward_thread,
    coalesce(v[14], 'sf:' || t[10]) AS call_stack,
    TRY_CAST(y[1] AS BIGINT) AS address,
    TRY_CAST(y[2] AS BIGINT) AS allocated_bytes,
    TRY_CAST(y[3] AS BIGINT) AS reserved_bytes,
    TRY_CAST(y[4] AS BIGINT) AS device_type,
    TRY_CAST(y[5] AS BIGINT) AS memory_device,
    coalesce(m[1], m[2]) AS label,
    CASE WHEN v[15] IS NOT NULL OR v[16] IS NOT NULL THEN
        json_extract_string(piece, [
            '$.args."Collective name"', '$.args."Process Group Name"', '$.args."Process Group Description"',
            '$.args."Process Group Ranks"', '$.args."In msg nelems"', '$.args."Out msg nelems"',
            '$.args."Group size"', '$.args.dtype', '$.args.Seq', '$.args."Dst Rank"', '$.args."Src Rank"'
        ])
    END AS collective,
    args,
    odd,
    CASE
        WHEN odd IS NOT NULL THEN NULL
        WHEN t[1] = 'X' AND len(json_keys(piece)) = (t[2] IS NOT NULL)::INT + (t[3] IS NOT NULL)::INT + (t[4] IS NOT NULL)::INT
            + (t[5] IS NOT NULL)::INT + (t[7] IS NOT NULL)::INT + (t[8] IS NOT NULL)::INT + (t[9] IS NOT NULL)::INT + 1
            THEN NULL
        WHEN t[1] = 'X' THEN json_merge_patch(piece, '{"ph":null,"cat":null,"name":null,"pid":null,"tid":null,"ts":null,"dur":null,"args":null}')
        WHEN t[1] IN ('s', 't', 'f') THEN json_merge_patch(piece, '{"id":null,"cat":null,"name":null,"pid":null,"tid":null,"ts":null,"dur":null,"args":null}')
        ELSE json_merge_patch(piece, '{"cat":null,"name":null,"pid":null,"tid":null,"ts":null,"dur":null,"args":null}')
    END AS rest,
    CASE
        WHEN NOT starts_with(t[9], '{') THEN '{"args":' || json_extract(piece, '$.args') || '}'
        WHEN v IS NULL OR (v[1] IS NULL AND v[6] IS NULL AND v[7] IS NULL AND shapes IS NULL AND dtypes IS NULL)
            OR (v[1] IS NOT NULL AND v[1] IS DISTINCT FROM correlation_id::VARCHAR)
            OR (v[6] IS NOT NULL AND v[6] IS DISTINCT FROM size_bytes::VARCHAR)
            OR (v[7] IS NOT NULL AND v[7] IS DISTINCT FROM size_bytes::VARCHAR)
            THEN t[9]
        ELSE json_merge_patch(t[9], '{"correlation":null,"bytes":null,"Bytes":null,"Input Dims":null,"Input dims":null,"Input type":null}')
    END AS body
FROM typed
