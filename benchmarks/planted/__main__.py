"""The planted-bottleneck benchmark: python -m benchmarks.planted [NAME ...] [--json FILE] [--page FILE] [--rounds N]

Records each program, runs the rules and prints: was the planted fault named among the first three findings, at its exact
line, and how far the predicted saving is from the measured one; for clean programs, whether anything was raised above low.
"""

from __future__ import annotations

import argparse
import json
import os
import sys
import tempfile

import torch

from benchmarks.planted.cases import clean_cases, planted_cases
from benchmarks.planted.device_cases import CASES
from benchmarks.planted.measure import RECORDS, ROUNDS, Outcome, measure
from benchmarks.planted.measure_device import measure_device
from benchmarks.planted.page import page


def main() -> int:
    parser = argparse.ArgumentParser(prog="benchmarks.planted", description=__doc__.splitlines()[0])
    parser.add_argument("names", nargs="*", help="only these programs")
    parser.add_argument("--json", help="write the rows here")
    parser.add_argument("--page", help="write docs/performance/planted.md here (all programs)")
    parser.add_argument("--rounds", type=int, default=ROUNDS)
    parser.add_argument("--records", type=int, default=RECORDS, help="recordings of each program")
    parser.add_argument(
        "--clock", choices=("wall", "cpu"), default="wall", help="clock of the un-profiled timings"
    )
    parser.add_argument("--keep", help="keep the runs in this directory")
    parser.add_argument("--verbose", action="store_true", help="print every finding")
    arguments = parser.parse_args()
    load_before = os.getloadavg()[0]
    torch.set_num_threads(1)
    cases = [*planted_cases(), *clean_cases()]
    if arguments.names:
        cases = [case for case in cases if case.name in arguments.names]
    outcomes = []
    with tempfile.TemporaryDirectory() as temporary:
        for case in cases:
            outcome = measure(
                case, arguments.keep or temporary, arguments.rounds, arguments.records, arguments.clock
            )
            outcomes.append(outcome)
            print(_row(outcome), flush=True)
            if arguments.verbose:
                for finding in outcome.findings:
                    print(
                        f"      {finding.rule} {finding.severity} {finding.saving_share:.3f} {finding.title}"
                    )
                    for line in finding.lines[:3]:
                        print(
                            f"        {os.path.basename(line.file)}:{line.line} {line.share:.3f} {line.code}"
                        )
                    print(f"        {finding.evidence[0].statement} {finding.symptoms}")
                for item in outcome.findings.not_checked:
                    if "failed" in item.reason:
                        print("     !", item.rule, item.reason)
        device = [measure_device(case, temporary) for case in CASES if arguments.names in ([], [case.name])]
    for result in device:
        verdict, line = "found" if result.recalled else "MISSED", "line" if result.exact_line else "-"
        print(f"{result.case.name:34} {result.case.rule:24} {verdict:6} {line:4} {result.said}")
    print(summary(outcomes))
    if held_out := [outcome for outcome in outcomes if outcome.case.held_out]:
        print(f"of these {len(held_out)} programs written after the rules:")
        print(summary(held_out))
    recalled, exact = sum(result.recalled for result in device), sum(result.exact_line for result in device)
    print(f"accelerator runs written by hand: recall {recalled}/{len(device)}, line {exact}/{len(device)}")
    if arguments.page:
        text = page(
            outcomes,
            device,
            records=arguments.records,
            rounds=arguments.rounds,
            clock=arguments.clock,
            load_before=load_before,
        )
        with open(arguments.page, "w", encoding="utf-8") as file:
            file.write(text)
    if arguments.json:
        with open(arguments.json, "w", encoding="utf-8") as file:
            json.dump([_record(outcome) for outcome in outcomes], file, indent=1)
    return 0


def _row(outcome: Outcome) -> str:
    case = outcome.case
    if case.is_clean:
        worst = outcome.findings[0] if outcome.findings else None
        said = f"{worst.rule} {worst.severity} {worst.saving_share:.1%}" if worst else "nothing"
        return f"{case.name:26} clean                    {'FALSE ALARM' if outcome.false_alarm else 'ok':12} {said}"
    predicted = f"{outcome.predicted_share:7.1%}" if outcome.predicted_share is not None else "      -"
    measured = f"{outcome.measured_share:7.1%}" if outcome.measured_share is not None else "      -"
    verdict = "found" if outcome.recalled else "MISSED"
    line = "line" if outcome.exact_line else "-"
    near = "near" if outcome.prediction_holds else "-"
    times = f"{outcome.findings.step_ns / 1e6:7.2f} {outcome.slow_ns / 1e6:7.2f} ms"
    return f"{case.name:26} {case.kinds[0]:24} {verdict:6} {line:4} predicted {predicted} measured {measured} {near:4} recorded, slow {times}"


def summary(outcomes: list[Outcome]) -> str:
    """The four numbers of the benchmark."""
    planted = [outcome for outcome in outcomes if not outcome.case.is_clean]
    clean = [outcome for outcome in outcomes if outcome.case.is_clean]
    recalled = [outcome for outcome in planted if outcome.recalled]
    text = [
        f"recall (right rule in the first three): {len(recalled)}/{len(planted)}",
        f"exact line: {sum(o.exact_line for o in recalled)}/{len(planted)}",
        f"predicted saving within 25 % of the measured one: {sum(o.prediction_holds for o in planted)}/{len(planted)}",
    ]
    if clean:
        text.append(
            f"false alarms (medium or high) on clean programs: {sum(o.false_alarm for o in clean)}/{len(clean)}"
        )
    return "\n".join(text)


def _record(outcome: Outcome) -> dict[str, object]:
    return {
        "case": outcome.case.name,
        "kinds": list(outcome.case.kinds),
        "held_out": outcome.case.held_out,
        "found": outcome.found.rule if outcome.found else None,
        "position": outcome.position,
        "exact_line": outcome.exact_line,
        "predicted_share": outcome.predicted_share,
        "measured_share": outcome.measured_share,
        "slow_step_ns": round(outcome.slow_ns),
        "record_s": round(outcome.record_s, 3),
        "analyse_s": round(outcome.analyse_s, 3),
        "findings": [finding.to_dict() for finding in outcome.findings],
    }


if __name__ == "__main__":
    sys.exit(main())
