"""Writes docs/comparison.md: trace by trace our numbers, ours in the definitions of HTA and TraceLens, and theirs.

python -m benchmarks.compare_peers TRACES    TRACES: the folder of real traces with their oracles/

Their values are the stored reference values of HTA 0.6.1 and TraceLens 0.1.0 (171dd747).
"""

from __future__ import annotations

import json
import sys
import tempfile
from pathlib import Path
from typing import Any

from explorer.analysis.peers import tracelens
from explorer.analysis.peers.hta_rows import hta_rows
from explorer.analysis.run import Run, open_run
from explorer.collectors.import_trace import import_trace
from explorer.collectors.options import ImportOptions
from explorer.model.errors import ExplorerError

PAGE = Path(__file__).resolve().parents[1] / "docs" / "comparison.md"
INTRODUCTION = """# Comparison with HTA and TraceLens

`--mode hta` and `--mode tracelens` on `breakdown`, `kernels` and `gaps` (and `run.launches("hta")`, `run.queue("hta")`) give
the numbers of Meta's [HTA](https://github.com/facebookresearch/HolisticTraceAnalysis) 0.6.1 and AMD's
[TraceLens](https://github.com/AMD-AGI/TraceLens) 0.1.0 (171dd747). On every trace below that the peer can read they are equal:
to the microsecond for HTA's whole numbers, to 1e-6 ms for TraceLens. The tests in `tests/analysis/peers` hold more than this page:
temporal breakdown, overlap, kernel types, kernel sums, idle categories, launch statistics and queue lengths, with and without the
last step.

Native numbers differ from the peers' on purpose. The last column says why, for each trace:

- **window**: native idle time is over the whole recording; theirs from the first start to the last end of device work.
- **whole us**: HTA rounds starts up and ends down to microseconds, so every kernel loses up to 2 us.
- **last step**: with two steps or more HTA drops the last one.
- **unlinked**: HTA (with two steps or more) and TraceLens drop device work whose launch is not in the trace.
- **stream rows**: HTA counts whatever carries a stream argument as device work: waits, and calls on the host.
- **one timeline**: both put all devices of a trace on one timeline; native has one per device, and sums them here.
- **2021 names**: TraceLens does not know the categories Kernel, Memcpy, Memset of 2021, nor MTIA's.
- **waits**: MTIA lists waits for events among its device work; natively they are waits, not work.
- **fills**: TraceLens counts memory fills as computation; HTA as memory; natively they are copies.
- **by name**: HTA tells classes by name (what begins with hip is communication, Sync anywhere in it is no compute).

Compute and idle time in ms. `=`: equal to the peer's own value. The page is made by `python -m benchmarks.compare_peers`.

| trace | native compute / idle | hta mode | HTA | tracelens mode | TraceLens | why native differs |
|---|---|---|---|---|---|---|
"""


def main() -> None:
    """Write the page."""
    folder = Path(sys.argv[1])
    names = [entry["file"] for entry in json.loads((folder / "MANIFEST.json").read_text())["files"]]
    lines = []
    with tempfile.TemporaryDirectory() as runs:
        for number, name in enumerate(sorted(names)):
            theirs = {kind: _oracle(folder, kind, name) for kind in ("hta", "tracelens")}
            if name.startswith("xplane") or not any(theirs.values()) or not (folder / name).is_file():
                continue
            try:
                # Merged ranks stay one, as the peers read them.
                options = ImportOptions(rank=0)
                run = open_run(
                    import_trace(folder / name, Path(runs) / str(number), options=options).directory
                )
            except ExplorerError as error:
                lines.append(f"| {_short(name)} | cannot be read: {error.message[:60]} | | | | | |")
                continue
            lines.append(_line(name, run, theirs))
            run.close()
            print(lines[-1], file=sys.stderr)
    PAGE.write_text(INTRODUCTION + "\n".join(lines) + "\n")


def _oracle(folder: Path, kind: str, name: str) -> dict[str, Any] | None:
    path = folder / "oracles" / kind / f"{name.replace('/', '__')}.json"
    return json.loads(path.read_text()) if path.is_file() else None


def _short(name: str) -> str:
    parts = name.replace(".json.gz", "").replace(".pt.trace", "").replace(".json", "").split("/")
    return "/".join(part.split(".")[0][:40] for part in parts)


def _line(name: str, run: Run, theirs: dict[str, dict[str, Any] | None]) -> str:
    native = run.breakdown().rows()
    has_device = any(row["device"] != "cpu" for row in native)
    compute, idle = (sum(row[f"{what}_ns"] for row in native) / 1e6 for what in ("compute", "idle"))
    own = f"{compute:.3f} / {idle:.3f}" + ("" if has_device else " (cpu)")
    hta, hta_theirs = _hta(run, theirs["hta"])
    lens, lens_theirs = _tracelens(run, theirs["tracelens"])
    why = (
        ", ".join(_reasons(run, native, theirs))
        if has_device
        else "no device work: native answers for the CPU"
    )
    return f"| {_short(name)} | {own} | {hta} | {hta_theirs} | {lens} | {lens_theirs} | {why} |"


def _hta(run: Run, oracle: dict[str, Any] | None) -> tuple[str, str]:
    rows = run.breakdown("hta").rows()
    ours = (
        "; ".join(f"{r['compute_time_us'] / 1e3:.3f} / {r['idle_time_us'] / 1e3:.3f}" for r in rows) or "none"
    )
    mode = (oracle or {"modes": {}})["modes"].get("include_last_step=False")
    if mode is None:
        return ours, ""
    if "load_error" in mode:
        return ours, f"cannot read it: {str(mode['load_error']).split(':')[0]}"
    records = mode.get("temporal_breakdown", {}).get("records")
    if not records:
        return (
            ours,
            "none"
            if not rows
            else f"fails: {str(mode['errors'].get('temporal_breakdown', '')).split(':')[0]}",
        )
    text = "; ".join(f"{r['compute_time(us)'] / 1e3:.3f} / {r['idle_time(us)'] / 1e3:.3f}" for r in records)
    same = [(r["compute_time_us"], r["idle_time_us"], r["non_compute_time_us"]) for r in rows] == [
        (r["compute_time(us)"], r["idle_time(us)"], r["non_compute_time(us)"]) for r in records
    ]
    return ours, "=" if same else f"**{text}**"


def _tracelens(run: Run, oracle: dict[str, Any] | None) -> tuple[str, str]:
    rows = run.breakdown("tracelens").rows()
    ours = "; ".join(f"{r['computation_time_ms']:.3f} / {r['idle_time_ms']:.3f}" for r in rows) or "none"
    if oracle is None:
        return ours, ""
    table = oracle.get("gpu_timeline") or {}
    if not table.get("records"):
        failed = str((oracle.get("errors") or {}).get("gpu_timeline") or oracle.get("load_error") or "")
        return (
            ours,
            "none" if "No GPU events" in failed else f"cannot read it: {failed.split(':')[0]}".rstrip(": "),
        )
    values = [record["time ms"] for record in table["records"]]
    mine = [rows[0][f"{name}_time_ms"] for name in tracelens.COLUMNS] if rows else []
    same = len(mine) == len(values) and all(abs(a - b) <= 1e-6 for a, b in zip(mine, values))
    return ours, "=" if same else f"**{values[0]:.3f} / {values[4]:.3f}**"


def _reasons(run: Run, native: list[dict[str, Any]], theirs: dict[str, dict[str, Any] | None]) -> list[str]:
    facts = run.engine.sql(
        """
        SELECT count(*) FILTER (launch_id IS NULL) AS unlinked, count(*) FILTER (category = 'fill') AS fills,
               count(*) FILTER (start_ns % 1000 <> 0 OR duration_ns % 1000 <> 0) AS fractions,
               count(DISTINCT device) AS devices FROM device_events
        """
    ).rows()[0]
    (rows,) = hta_rows(run, include_last_step=False)
    categories = set(rows.device["category"])
    steps = run.engine.sql(
        "SELECT count(DISTINCT name) AS n FROM events WHERE name LIKE '%ProfilerStep%'"
    ).rows()[0]["n"]
    reasons = ["window"]
    if facts["fractions"]:
        reasons.append("whole us")
    if steps >= 2:
        reasons.append("last step")
    if facts["unlinked"]:
        reasons.append("unlinked")
    if categories & {"cuda_sync", "cpu_op", "cuda_runtime", "hip_runtime"}:
        reasons.append("stream rows")
    if facts["devices"] > 1:
        reasons.append("one timeline")
    if categories & {"Kernel", "Memcpy", "mtia_ccp_events"}:
        reasons.append("2021 names")
    if "mtia_ccp_events" in categories:
        reasons.append("waits")
    if facts["fills"]:
        reasons.append("fills")
    if set(rows.device["kernel_type"]) & {"OTHER"} or any(n.startswith("hip") for n in rows.device["name"]):
        reasons.append("by name")
    return reasons


if __name__ == "__main__":
    main()
