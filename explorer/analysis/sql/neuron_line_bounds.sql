-- neuron_line_bounds: lower bounds of each source line's time on each core, from what its instructions and transfers moved and
-- computed; the largest one binds. A gap between a bound and its ideal is room, not a promise.
-- Definitions: those of neuron_bounds, over the line's own instructions and the transfers that feed or drain them.
-- Needs: neuron_site_bounds, sites
-- Columns
--   rank INTEGER - Process rank
--   profile VARCHAR - Device profile
--   device VARCHAR - Logical core as a device
--   core INTEGER - Physical core within the logical one
--   site_id BIGINT - Source line
--   file VARCHAR - File of the line
--   line INTEGER - Line number
--   function VARCHAR - Function or kernel
--   instructions DOUBLE count Instructions, shared ones in part
--   start_ns BIGINT ns First start of an instruction or transfer of its own
--   end_ns BIGINT ns Last end
--   active_ns BIGINT ns Time with any of its instructions or transfers under way
--   memory_ns BIGINT ns Memory bound: time with one of its transfers under way
--   memory_ideal_ns BIGINT ns The same bytes at full DMA bandwidth; a transfer of several lines is shared
--   memory_no_reload_ns BIGINT ns Each input and output tensor that it moves, once, at full DMA bandwidth
--   compute_ns BIGINT ns Compute bound: time with the Tensor engine at work for it
--   compute_ideal_ns BIGINT ns The same matrix work at the Tensor engine's peak
--   compute_useful_ns BIGINT ns That without transposes
--   pipeline_ns BIGINT ns Perfect pipeline: the busiest engine alone
--   busiest_engine VARCHAR - Which engine that is
--   bound VARCHAR - memory, compute or the busiest other engine: the largest of the bounds
--   bound_ns BIGINT ns That bound
--   speedup_limit DOUBLE ratio active_ns over bound_ns: what perfect overlap within the line would give
SELECT b.rank, b.profile, b.device, b.core, b.site_id, s.file, s.line, s.function, b.instructions, b.start_ns, b.end_ns, b.active_ns,
       b.memory_ns, b.memory_ideal_ns, b.memory_no_reload_ns, b.compute_ns, b.compute_ideal_ns, b.compute_useful_ns, b.pipeline_ns,
       b.busiest_engine, b.bound, b.bound_ns, b.speedup_limit
FROM neuron_site_bounds AS b LEFT JOIN sites AS s USING (site_id)
ORDER BY b.active_ns DESC, b.rank, b.profile, b.core, b.site_id
