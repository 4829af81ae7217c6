-- inference_steps: the forward passes of a serving engine (vLLM): phase, requests and tokens of each batch.
-- Needs: events, tracks
-- Columns
--   rank INTEGER - Process rank
--   event_id BIGINT - The range
--   step INTEGER - Step it is
--   start_ns BIGINT ns Start
--   duration_ns BIGINT ns Duration
--   phase VARCHAR - prefill where the batch holds context tokens, else decode
--   context_requests BIGINT count Requests in prefill
--   context_tokens BIGINT count Their tokens
--   generation_requests BIGINT count Requests in decode
--   generation_tokens BIGINT count Their tokens
WITH passes AS (
    SELECT e.rank, e.event_id, e.step, e.start_ns, e.duration_ns,
           regexp_extract(e.name, '^execute_context_(\d+)\((\d+)\)_generation_(\d+)\((\d+)\)$', ['a', 'b', 'c', 'd']) AS n
    FROM events AS e JOIN tracks AS t USING (rank, track_id)
    WHERE e.name LIKE 'execute_context_%' AND t.kind = 'thread'
)
SELECT rank, event_id, step, start_ns, duration_ns, CASE WHEN n.b::BIGINT > 0 THEN 'prefill' ELSE 'decode' END AS phase,
       n.a::BIGINT AS context_requests, n.b::BIGINT AS context_tokens, n.c::BIGINT AS generation_requests,
       n.d::BIGINT AS generation_tokens
FROM passes
WHERE n.a <> ''
ORDER BY rank, start_ns, event_id
