-- inference_steps: the forward passes of a serving engine (vLLM): phase, requests and tokens of each batch.
-- Needs: events, tracks
-- Columns
--   rank INTEGER - Process rank
--   event_id BIGINT - The range
--   step INTEGER - Step it is
--   start_ns BIGINT ns Start
--   duration_ns BIGINT ns Duration
--   phase VARCHAR - prefill where the batch holds context tokens (new requests, where no tokens are said), else decode
--   context_requests BIGINT count Requests in prefill
--   context_tokens BIGINT count Their tokens; null: the engine's version does not say
--   generation_requests BIGINT count Requests in decode
--   generation_tokens BIGINT count Their tokens; null: the engine's version does not say
WITH passes AS (
    SELECT e.rank, e.event_id, e.step, e.start_ns, e.duration_ns,
           regexp_extract(e.name, '^execute_context_(\d+)\((\d+)\)_generation_(\d+)\((\d+)\)$', ['a', 'b', 'c', 'd']) AS n,
           regexp_extract(e.name, '^execute_new_(\d+)_cached_(\d+)$', ['a', 'c']) AS r
    FROM events AS e JOIN tracks AS t USING (rank, track_id)
    WHERE (e.name LIKE 'execute_context_%' OR e.name LIKE 'execute_new_%') AND t.kind = 'thread'
), counted AS (
    SELECT rank, event_id, step, start_ns, duration_ns, coalesce(nullif(n.a, ''), r.a)::BIGINT AS context_requests,
           nullif(n.b, '')::BIGINT AS context_tokens, coalesce(nullif(n.c, ''), r.c)::BIGINT AS generation_requests,
           nullif(n.d, '')::BIGINT AS generation_tokens
    FROM passes WHERE n.a <> '' OR r.a <> ''
)
SELECT rank, event_id, step, start_ns, duration_ns,
       CASE WHEN coalesce(context_tokens, context_requests) > 0 THEN 'prefill' ELSE 'decode' END AS phase,
       context_requests, context_tokens, generation_requests, generation_tokens
FROM counted
ORDER BY rank, start_ns, event_id
