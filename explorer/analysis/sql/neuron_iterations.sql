-- neuron_iterations: NKI kernel lines by loop iteration: where the loop variables were recorded, which iterations cost most.
-- Needs: neuron.Instruction, neuron.KernelInstructions, neuron.KernelIterationVariables
-- Columns
--   rank INTEGER - Process rank
--   profile VARCHAR - Device profile
--   file VARCHAR - Kernel source file
--   line BIGINT - Line of the instruction
--   variable VARCHAR - Innermost loop variable
--   value BIGINT - Its value
--   outer_variable VARCHAR - Next outer loop variable
--   outer_value BIGINT - Its value
--   instructions BIGINT count Instructions
--   engine_ns BIGINT ns Sum of durations
--   wait_ns BIGINT ns Waits for events
SELECT i.rank, i.profile, k.file_path AS file, k.line_number AS line, v.variable_name AS variable, v.variable_value AS value,
       p.variable_name AS outer_variable, p.variable_value AS outer_value, count(*) AS instructions,
       sum(coalesce(i.duration_ns, i.end_ts - i.start_ts))::BIGINT AS engine_ns, sum(i.evt_wait_time_ns)::BIGINT AS wait_ns
FROM neuron.Instruction AS i
JOIN neuron.KernelInstructions AS k
  ON k.rank = i.rank AND k.profile = i.profile AND k.kernel_instruction_name = i.kernel_instruction_name
 AND coalesce(k.pcore_idx, -1) = coalesce(i.pcore_idx, -1)
JOIN neuron.KernelIterationVariables AS v
  ON v.rank = k.rank AND v.profile = k.profile AND v.iteration_variable_id = k.iteration_variables_id
 AND coalesce(v.pcore_idx, -1) = coalesce(k.pcore_idx, -1)
LEFT JOIN neuron.KernelIterationVariables AS p
  ON p.rank = v.rank AND p.profile = v.profile AND p.iteration_variable_id = v.parent_iteration_variable_id
 AND coalesce(p.pcore_idx, -1) = coalesce(v.pcore_idx, -1)
GROUP BY ALL
ORDER BY engine_ns DESC, file, line, value
