"""Texts for agents: how to use the server, and the prompts it offers."""

INSTRUCTIONS = """\
Answers about one recorded run of a PyTorch program. Start with `bottlenecks`: it names the line to edit, why it is slow,
what to do and the saving to expect. `finding` gives the evidence, `source` the program's text with costs per line,
`what_if` the predicted step time of a change, `compare` what changed against another run, `sql` everything else. Times are
integers in nanoseconds, shares 0 to 1, ids are RANK:EVENT_ID. Times include the cost of recording; savings and lines of
findings do not: they are parts of `step_ns`, while numbers in their evidence are parts of `recorded_step_ns`. `health` and
`not_checked` say what this run cannot tell: do not conclude from what is missing."""

FIND_BOTTLENECK = """\
Find what makes the program{run} slow, and say which line to change.
1. Call `bottlenecks`. Take the finding with the largest expected saving; read its line, evidence, advice and caveats.
2. Call `source` around that line to see the code as it ran.
3. Where the saving matters, check it with `what_if` (for example remove=["line=FILE:LINE"]); work that is hidden behind
   other work saves nothing.
4. Answer with: file and line, what it does wrong, the changed code, and the expected saving per step in ms and percent.
If `bottlenecks` is empty, look at `critical_path` and `breakdown` and say that no single fault stands out."""

COMPARE_RUNS = """\
Say what changed from the run {before} to the run {after}, and why.
1. Call `compare` with before={before} and after={after}. If `comparable` is false, stop and say which difference makes the
   step times measure different work.
2. Read the verdict: `no_significant_change` and `undecided` mean that the noise explains the difference. Say so, and no more.
3. Else take the largest rows of `changes` (by line), and call `compare` again with by="op" or by="kernel" where a line does
   not explain it. Look at the lines with `source`.
4. Answer with: step before and after, the change with its interval, the lines that explain it with their part of the change,
   and what to do about what became slower."""
