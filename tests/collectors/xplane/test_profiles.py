"""Real XLA profiles against the proto's own counts and xprof's; made ones for TPU planes, steps and damage."""

from __future__ import annotations

import json
from collections import Counter, defaultdict
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from explorer.collectors.import_trace import import_trace
from explorer.model.errors import InputError
from tests.collectors.imported import Imported, union_ns
from tests.collectors.wire_writer import message
from tests.traces import oracle, trace

NAMES = ("xplane/tl_jax08_gemm_mi300.xplane.pb", "xplane/tl_jax_conv_minimal_08_mi300.xplane.pb")


@pytest.fixture(scope="module")
def runs(tmp_path_factory):
    made: dict[str, Imported] = {}

    def run_of(name: str) -> Imported:
        if name not in made:
            made[name] = Imported(trace(name), tmp_path_factory.mktemp("xplane"))
        return made[name]

    return run_of


def picoseconds(row):
    return json.loads(row["attributes"] or "{}").get("duration_ps", row["duration_ns"] * 1000)


@pytest.mark.parametrize("name", NAMES)
def test_every_event_of_every_line(runs, name):
    run, expected = runs(name), oracle("xspace", name)
    run.check_counts()
    counts = run.manifest.counts
    assert counts["events"] + counts["memory_events"] == expected["events_total"]
    tracks = {row["track_id"]: (row["process_name"], row["thread_id"]) for row in run.rows("tracks")}
    rows = defaultdict(list)
    for row in run.rows("events"):
        rows[tracks[row["track_id"]]].append(row)
    memory = Counter(json.loads(row["attributes"])["line"] for row in run.rows("memory_events"))
    base = run.manifest.clock[0]["time_ns"]
    for plane in expected["planes"]:
        for line in plane["lines"]:
            found = rows[plane["name"], line["id"]]
            assert len(found) + memory.get(line["name"], 0) == line["events"]
            assert sum(map(picoseconds, found)) == line["sum_ps"]
            if plane["name"].startswith("/device"):
                assert union_ns(found) * 1000 == line["union_ps"]
                first = min(row["start_ns"] for row in found) - base - line["timestamp_ns"]
                assert first * 1000 == line["first_offset_ps"]


@pytest.mark.parametrize("name", NAMES)
def test_kernel_totals_equal_xprof(runs, name):
    run, expected = runs(name), oracle("xprof", name)
    by_line: dict[str, list[int]] = defaultdict(lambda: [0, 0])
    tracks = {row["track_id"]: row for row in run.rows("tracks", kind="stream")}
    for row in run.rows("events"):
        if (track := tracks.get(row["track_id"])) is not None:
            values = by_line[f"{track['process_name']} | {track['label']}"]
            values[0] += 1
            values[1] += row["duration_ns"]
    prefix = Path(name).name.removesuffix(".xplane.pb")
    checked = 0
    for line, values in expected["lines"].items():
        if "Stream #" in line:
            assert by_line[line.removeprefix(prefix + " ")] == [
                values["events"],
                round(values["sum_us"] * 1000),
            ]
            checked += 1
    assert checked == len(by_line)


def test_kernels_know_the_line_of_their_hlo_op(runs):
    run = runs(NAMES[0])
    sites = {row["site_id"]: row for row in run.rows("sites")}
    lines = Counter()
    for row in run.rows("events", category="kernel"):
        assert (row["attribution"], row["precision"]) == ("debug_info", "exact")
        site = sites[row["site_id"]]
        assert site["file"] == "/workspace/traces/generate_gemm_trace.py"
        lines[site["line"], json.loads(row["attributes"])["hlo_module"]] += 1
    assert lines == {(34, "jit_broadcast_in_dim"): 12, (37, "jit_dot"): 18}
    assert all(row["launch_id"] is not None for row in run.rows("events", category="kernel"))


def test_devices(runs):
    devices = runs(NAMES[0]).rows("devices")
    assert [row["device"] for row in devices] == [f"hip:{number}" for number in range(8)]
    assert {(row["vendor"], row["unit_count"], row["memory_bytes"]) for row in devices} == {
        ("amd", 304, 206141652992)
    }


def stat(key: int, **value) -> bytes:
    ((kind, content),) = value.items()
    return message((1, key), ({"number": 4, "text": 5, "data": 6, "ref": 7, "real": 2}[kind], content))


def plane(name: str, lines=(), kinds=(), stats=(), names=()) -> bytes:
    return message(
        (2, name),
        *((3, line) for line in lines),
        *(
            (4, message((1, key), (2, message((1, key), (2, text), *((5, s) for s in own)))))
            for key, text, own in kinds
        ),
        *((5, message((1, key), (2, message((1, key), (2, text))))) for key, text in names),
        *((6, value) for value in stats),
    )


def line(number: int, name: str, events, timestamp=0) -> bytes:
    return message((1, number), (2, name), (3, timestamp), *((4, event) for event in events))


def event(kind: int, offset: int, duration: int, *stats: bytes) -> bytes:
    return message((1, kind), (2, offset), (3, duration), *((4, value) for value in stats))


def imported(tmp_path, *planes: bytes) -> Imported:
    path = tmp_path / "x.xplane.pb"
    path.write_bytes(message(*((1, value) for value in planes)))
    run = Imported(path, tmp_path)
    run.check_counts()
    return run


def test_a_tpu_plane_with_steps_modules_and_frames(tmp_path):
    frames = message(
        (1, "/home/u/model.py"), (1, "/home/u/train.py"), (2, "layer"), (2, "step"),
        (3, message((1, 1), (2, 1), (3, 12))), (3, message((1, 2), (2, 2), (3, 40))),
        (4, message((1, 2))), (4, message((1, 1), (2, 1))),
    )  # fmt: skip
    instruction = message((1, "fusion.3"), (2, "fusion"), (7, message((2, "jit(step)/mul"), (15, 2))))
    hlo = message((1, message((1, "jit_step"), (3, message((2, instruction))), (25, frames))))
    run = imported(
        tmp_path,
        plane("/host:metadata", kinds=[(1, "jit_step(7)", [stat(1, data=hlo)])], names=[(1, "Hlo Proto")]),
        plane(
            "/device:TPU:0",
            lines=[
                line(1, "Steps", [event(1, 0, 9_000_000, stat(1, number=4))], 1_700_000_000_000_000_000),
                line(2, "XLA Modules", [event(2, 0, 9_000_000)], 1_700_000_000_000_000_000),
                line(
                    3,
                    "XLA Ops",
                    [
                        event(
                            3,
                            1_000_400,
                            2_000_700,
                            stat(2, text="fusion.3"),
                            stat(3, text="jit_step"),
                            stat(4, number=7),
                        ),
                        event(4, 4_000_000, 1_000_000),
                        event(5, 5_000_000, 1_000_000, stat(5, text="/home/u/loss.py:3")),
                    ],
                    1_700_000_000_000_000_000,
                ),
            ],
            kinds=[
                (1, "4", []),
                (2, "jit_step", []),
                (3, "%fusion.3", [stat(6, number=99)]),
                (4, "all-reduce.1", []),
                (5, "%copy", []),
            ],
            names=[
                (1, "step_num"),
                (2, "hlo_op"),
                (3, "hlo_module"),
                (4, "program_id"),
                (5, "source"),
                (6, "flops"),
            ],
        ),
    )
    (fusion,) = run.rows("events", name="%fusion.3")
    assert fusion["category"] == "kernel"
    assert (fusion["start_ns"], fusion["duration_ns"]) == (1_700_000_000_000_001_000, 2001)
    assert json.loads(fusion["attributes"])["duration_ps"] == 2_000_700
    assert fusion["flops"] == 99
    sites = {row["site_id"]: row for row in run.rows("sites")}
    chain = sorted(run.rows("stacks", stack_id=fusion["stack_id"]), key=lambda row: row["depth"])
    assert [
        (sites[row["site_id"]]["file"], sites[row["site_id"]]["line"], sites[row["site_id"]]["function"])
        for row in chain
    ] == [
        ("/home/u/model.py", 12, "layer"),
        ("/home/u/train.py", 40, "step"),
    ]
    assert run.rows("events", name="all-reduce.1")[0]["category"] == "collective"
    assert sites[run.rows("events", name="%copy")[0]["site_id"]]["line"] == 3
    assert run.rows("events", name="jit_step")[0]["category"] == "annotation"
    (step,) = run.rows("steps")
    assert (step["step"], step["start_ns"], step["duration_ns"]) == (4, 1_700_000_000_000_000_000, 9000)
    assert fusion["step"] == 4


def test_a_fusion_of_several_lines_is_shared_among_them(tmp_path):
    def instruction(name, opcode, line, *more):
        metadata = [(7, message((2, "op"), (3, "/home/u/net.py"), (4, line)))] if line else []
        return message((1, name), (2, opcode), *metadata, *more)

    body = [
        ("p", "parameter", 1),
        ("a", "multiply", 10),
        ("b", "add", 11),
        ("c", "add", 11),
        ("d", "bitcast", 99),
        ("e", "tanh", 12),
    ]
    fused = message((1, "fused"), (5, 42), *((2, instruction(*row)) for row in body))
    entry = message((1, "main"), (5, 43), (2, instruction("fusion.1", "fusion", 10, (38, b"\x2a"))))
    hlo = message((1, message((1, "jit_f"), (3, fused), (3, entry))))
    run = imported(
        tmp_path,
        plane("/host:metadata", kinds=[(1, "jit_f(7)", [stat(1, data=hlo)])], names=[(1, "Hlo Proto")]),
        plane(
            "/device:GPU:0",
            lines=[
                line(
                    1,
                    "Stream #1(Kernel)",
                    [event(1, 0, 8000, stat(2, text="fusion.1"), stat(3, text="jit_f"))],
                )
            ],
            kinds=[(1, "fusion_1", [])],
            names=[(2, "hlo_op"), (3, "hlo_module")],
        ),
    )
    sites = {row["site_id"]: row["line"] for row in run.rows("sites")}
    shares = {sites[row["site_id"]]: row["share"] for row in run.rows("event_sites")}
    assert shares == {10: 0.25, 11: 0.5, 12: 0.25}
    (kernel,) = run.rows("events")
    assert (sites[kernel["site_id"]], kernel["precision"], kernel["attribution"]) == (
        11,
        "shared",
        "debug_info",
    )


def test_equal_line_names_stay_apart_and_flows_connect(tmp_path):
    run = imported(
        tmp_path,
        plane(
            "/host:CPU",
            lines=[
                line(1, "pool", [event(1, 0, 5000, stat(1, number=3), stat(2, number=77))]),
                line(2, "pool", [event(2, 9000, 5000, stat(3, number=3), stat(4, number=77))]),
            ],
            kinds=[(1, "send", []), (2, "receive", [])],
            names=[(1, "_pt"), (2, "_p"), (3, "_ct"), (4, "_c")],
        ),
    )
    assert len(run.rows("tracks")) == 2
    (edge,) = run.rows("edges", kind="flow")
    names = {row["event_id"]: row["name"] for row in run.rows("events")}
    assert (names[edge["source_id"]], names[edge["target_id"]]) == ("send", "receive")
    assert run.health()["no_absolute_time"] == 1


def test_truncation_keeps_the_events_before_it(tmp_path):
    data = Path(trace(NAMES[0])).read_bytes()
    counts = []
    for share in (0.3, 0.7, 0.95):
        folder = tmp_path / str(share)
        folder.mkdir()
        path = folder / "cut.xplane.pb"
        path.write_bytes(data[: int(len(data) * share)])
        run = Imported(path, folder)
        run.check_counts()
        assert run.report.exit_code == 4
        counts.append(run.manifest.counts["events"] + run.manifest.counts["memory_events"])
    assert counts == sorted(counts)
    assert 0 < counts[-1] < oracle("xspace", NAMES[0])["events_total"]


def test_a_plane_full_of_rubbish_is_refused(tmp_path):
    path = tmp_path / "x.pb"
    path.write_bytes(b"\x0a\x05\x12\x03/x" + b"\xff" * 50)
    with pytest.raises(InputError):
        import_trace(path, tmp_path / "run")


@settings(max_examples=30)
@given(data=st.data())
def test_flipped_bytes_never_crash(tmp_path_factory, data):
    original = message(
        (
            1,
            plane(
                "/device:GPU:0",
                [
                    line(
                        1,
                        "Stream #1(Kernel)",
                        [event(1, n * 1000, 500, stat(1, number=n + 1)) for n in range(30)],
                    )
                ],
                [(1, "k", [])],
                names=[(1, "correlation_id")],
            ),
        ),
        (4, "host"),
    )
    broken = bytearray(original)
    for place in data.draw(st.lists(st.integers(0, len(original) - 1), min_size=1, max_size=6)):
        broken[place] ^= data.draw(st.integers(1, 255))
    folder = tmp_path_factory.mktemp("flip")
    path = folder / "x.pb"
    path.write_bytes(bytes(broken))
    try:
        run = Imported(path, folder)
    except InputError:
        return
    run.check_counts()
    # A flipped tag can make another field an event; no flip can make more than one.
    assert len(run.rows("events")) <= 30 + 6
