"""Broken traces: everything readable is kept, nothing is invented, and what was lost or mended is said."""

from __future__ import annotations

import gzip
import json
import random
from collections import Counter
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from explorer.collectors.import_trace import import_trace
from explorer.collectors.kineto.rows import read_rows
from explorer.collectors.kineto.splitter import TraceText
from explorer.model.errors import InputError
from explorer.store.reader import RunReader
from tests.traces import trace


def event(number: int, **more: Any) -> dict[str, Any]:
    return {
        "ph": "X",
        "cat": "cpu_op",
        "name": f"aten::op{number}",
        "pid": 7,
        "tid": 7,
        "ts": 1000 + 10 * number,
        "dur": 5,
        "args": {"External id": number},
        **more,
    }


def write(tmp_path: Path, text: str | bytes) -> Path:
    path = tmp_path / "trace.json"
    path.write_bytes(text if isinstance(text, bytes) else text.encode())
    return path


def events_of(path: Path, tmp_path: Path) -> tuple[Any, list[dict[str, Any]]]:
    report = import_trace(path, tmp_path / "run")
    return report, RunReader(report.directory).read("events").to_pylist()


def whole(*texts: str) -> str:
    return '{"schemaVersion": 1, "traceEvents": [' + ",\n".join(texts) + '], "traceName": "x"}'


GOOD = [json.dumps(event(number)) for number in range(4)]

MENDED = {
    "not a number": (json.dumps(event(9)).replace('"External id": 9', '"bandwidth": NaN'), "bandwidth"),
    "infinity": (json.dumps(event(9)).replace('"External id": 9', '"bandwidth": -inf'), "bandwidth"),
    "control character": (json.dumps(event(9)).replace("aten::op9", "aten::\x01op9"), None),
    "raw line break in a string": (json.dumps(event(9)).replace("aten::op9", "aten::\nop9"), None),
    "windows path": (json.dumps(event(9)).replace("aten::op9", r"C:\Users\x\model.py"), None),
    "path that ends in a backslash": (
        json.dumps(event(9)).replace('"External id": 9', r'"path": "C:\models\", "device": 1'),
        "path",
    ),
    "lone surrogate": (json.dumps(event(9)).replace("aten::op9", r"aten::\ud800op9"), None),
    "trailing comma": (json.dumps(event(9)).replace("9}}", "9,},}"), None),
    "python literal": (json.dumps(event(9)).replace('"External id": 9', '"flag": True'), "flag"),
    "leading zeros": (json.dumps(event(9)).replace('"External id": 9', '"code": 007'), "code"),
    "bare point": (json.dumps(event(9)).replace('"External id": 9', '"code": 1.'), "code"),
    "unescaped quotes": (json.dumps(event(9)).replace("aten::op9", 'void f("x")'), None),
}


@pytest.mark.parametrize("kind", MENDED)
def test_a_mended_event_is_kept_with_its_neighbours(kind: str, tmp_path: Path) -> None:
    text, key = MENDED[kind]
    assert text != json.dumps(event(9))
    report, events = events_of(write(tmp_path, whole(*GOOD[:2], text, *GOOD[2:])), tmp_path)
    assert [e["duration_ns"] for e in events] == [5000] * 5
    assert (report.exit_code, report.lost) == (4, 0)
    assert report.repaired >= 1
    mended = next(e for e in events if e["start_ns"] == 1_090_000)
    if key:
        assert key in json.loads(mended["attributes"])
    (manifest,) = RunReader(report.directory).manifests.values()
    assert all(repair["first_offset"] > 0 for repair in manifest.repairs)


def test_invalid_utf8_is_replaced(tmp_path: Path) -> None:
    text = whole(*GOOD).encode().replace(b"op1", b"op\xff1")
    report, events = events_of(write(tmp_path, text), tmp_path)
    assert len(events) == 4
    assert (report.exit_code, report.repaired) == (4, 1)
    assert next(e["name"] for e in events if e["start_ns"] == 1_010_000).startswith("aten::op")


def test_byte_order_mark(tmp_path: Path) -> None:
    report, events = events_of(write(tmp_path, b"\xef\xbb\xbf" + whole(*GOOD).encode()), tmp_path)
    assert (len(events), report.repaired, report.exit_code) == (4, 1, 4)


def test_unreadable_event_goes_to_quarantine(tmp_path: Path) -> None:
    report, events = events_of(
        write(tmp_path, whole(*GOOD[:2], '{"ph": "X", "name": ]]] }', *GOOD[2:])), tmp_path
    )
    assert len(events) == 4
    assert (report.lost, report.exit_code) == (1, 4)
    (row,) = RunReader(report.directory).read("quarantine").to_pylist()
    assert row["row"].startswith('{"ph": "X", "name": ]]]')
    assert whole(*GOOD[:2], '{"ph": "X", "name": ]]] }', *GOOD[2:])[row["offset"] :].startswith(
        '{"ph": "X", "name": ]]]'
    )


IMPOSSIBLE = {
    "negative_duration": {"dur": -1},
    "no_time": {"ts": "soon"},
    "time_out_of_range": {"ts": 4.7e15},
    "impossible_duration": {"dur": 9e13},
}


@pytest.mark.parametrize("reason", IMPOSSIBLE)
def test_impossible_times_go_to_quarantine(reason: str, tmp_path: Path) -> None:
    report, events = events_of(
        write(tmp_path, whole(*GOOD, json.dumps(event(9, **IMPOSSIBLE[reason])))), tmp_path
    )
    assert len(events) == 4
    (row,) = RunReader(report.directory).read("quarantine").to_pylist()
    assert row["reason"] == reason
    assert json.loads(row["row"])["name"] == "aten::op9"
    assert report.exit_code == 4


def test_odd_types_are_kept(tmp_path: Path) -> None:
    odd = [
        json.dumps(event(5, args="no object")),
        json.dumps(event(6, tid="stream 7", pid="Spans")),
        json.dumps(event(7, ts="1000.5", dur="0.25")),
        json.dumps(event(8, name=None)),
        json.dumps(event(9, args={"correlation": "abc", "External id": 10159970886766084423, "bytes": 1.5})),
        json.dumps(event(10, name="k" * 5160)),
        json.dumps(event(11, custom={"deep": [1, 2]})),
        "17",
        '"text"',
        "null",
    ]
    report, events = events_of(write(tmp_path, whole(*GOOD, *odd)), tmp_path)
    by_id = {e["event_id"]: e for e in events}
    assert len(events) == 11
    assert json.loads(by_id[4]["attributes"])["args"] == "no object"
    assert (by_id[6]["start_ns"], by_id[6]["duration_ns"]) == (1_000_500, 250)
    assert by_id[7]["name"] == ""
    kept = json.loads(by_id[8]["attributes"])
    assert (kept["correlation"], kept["External id"], kept["bytes"]) == ("abc", 10159970886766084423, 1.5)
    assert len(by_id[9]["name"]) == 5160
    assert json.loads(by_id[10]["attributes"])["custom"] == {"deep": [1, 2]}
    reasons = Counter(RunReader(report.directory).read("quarantine")["reason"].to_pylist())
    assert reasons == {"not_an_object": 3}


def test_a_time_inside_args_is_not_the_events(tmp_path: Path) -> None:
    text = '{"args": {"ts": 5, "dur": 6}, "ph": "X", "name": "a", "pid": 1, "tid": 1, "ts": 1000.125, "dur": 2.5}'
    _, (only,) = events_of(write(tmp_path, whole(text)), tmp_path)
    assert (only["start_ns"], only["duration_ns"]) == (1_000_125, 2_500)


def test_times_are_exact_where_floats_are_not(tmp_path: Path) -> None:
    text = (
        json.dumps(event(1))
        .replace('"ts": 1010', '"ts": 1623142623987331.123')
        .replace('"dur": 5', '"dur": 0.001')
    )
    _, (only,) = events_of(write(tmp_path, whole(text)), tmp_path)
    assert (only["start_ns"], only["duration_ns"]) == (1623142623987331123, 1)


CONTAINERS = {
    "bare array": "[" + ",".join(GOOD) + "]",
    "unclosed array": "[" + ",".join(GOOD),
    "unclosed array with comma": "[" + ",".join(GOOD) + ",\n",
    "trailing comma": '{"traceEvents": [' + ",".join(GOOD) + ",]}",
    "events last": '{"a": {"b": "]}"}, "traceEvents": [' + ",".join(GOOD) + "]}",
    "line break first": "\n" + whole(*GOOD),
}


@pytest.mark.parametrize("kind", CONTAINERS)
def test_containers(kind: str, tmp_path: Path) -> None:
    report, events = events_of(write(tmp_path, CONTAINERS[kind]), tmp_path)
    assert [e["name"] for e in events] == [f"aten::op{n}" for n in range(4)]
    assert report.lost == 0


NO_TRACE = {
    "empty object": "{}",
    "other JSON": '{"a": 1}',
    "cut off head": '{"schemaVersion": 1, "deviceProp',
    "text": "hello",
    "deep nesting": "[" * 100_000,
    "events are no list": '{"traceEvents": 5}',
}


@pytest.mark.parametrize("kind", NO_TRACE)
def test_what_is_no_trace_is_refused_and_nothing_is_written(kind: str, tmp_path: Path) -> None:
    with pytest.raises(InputError) as caught:
        import_trace(write(tmp_path, NO_TRACE[kind]), tmp_path / "run")
    assert "\n" not in str(caught.value)
    assert sorted(p.name for p in tmp_path.iterdir()) == ["trace.json"]


@pytest.fixture(scope="module")
def real() -> bytes:
    return gzip.decompress(trace("amd/hta_mi250_minitoy_rocm62.json.gz").read_bytes())


def read(data: bytes) -> tuple[list[tuple[Any, ...]], TraceText]:
    """Events as (ph, name, ts, dur), in order."""
    text = TraceText(iter([data]), chunk_bytes=1 << 14)
    found: list[tuple[Any, ...]] = []
    for chunk in text.chunks():
        rows = read_rows(chunk.text)
        found += zip(*(rows[name].to_pylist() for name in ("ph", "name", "ts", "dur")))
    return found, text


def test_truncation_keeps_the_complete_prefix(real: bytes) -> None:
    expected, _ = read(real)
    start = real.index(b'"traceEvents"')
    before = 0
    for cut in range(start + 20, len(real) - 200, 997):
        found, text = read(real[:cut])
        assert found == expected[: len(found)], cut
        assert len(found) >= before
        assert len(found) >= real[:cut].count(b'"ph":') - 1
        before = len(found)
        assert not text.closed or cut > real.rindex(b"]")


def test_truncated_gzip(real: bytes, tmp_path: Path) -> None:
    data = gzip.compress(real)
    path = tmp_path / "cut.json.gz"
    path.write_bytes(data[: len(data) // 2])
    report, events = events_of(path, tmp_path)
    assert 0 < len(events) < 115
    assert report.exit_code == 4


@settings(max_examples=60)
@given(seed=st.integers(0, 2**32), flips=st.integers(1, 6))
def test_flipped_bytes_never_crash_and_never_invent(real: bytes, seed: int, flips: int) -> None:
    chance = random.Random(seed)
    start = real.index(b'"traceEvents"')
    data = bytearray(real)
    for _ in range(flips):
        data[chance.randrange(start + 18, len(data))] = chance.randrange(256)
    found, _ = read(bytes(data))
    expected, _ = read(real)
    known = Counter(expected)
    # A flip changes at most the events it hits, and can split none into more than the pieces around it.
    assert sum((Counter(found) - known).values()) <= 2 * flips
    assert len(found) <= len(expected) + flips
    assert len(found) >= len(expected) - 8 * flips


@settings(max_examples=15)
@given(seed=st.integers(0, 2**32))
def test_order_does_not_matter(real: bytes, seed: int, tmp_path_factory: pytest.TempPathFactory) -> None:
    document = json.loads(real)
    folder = tmp_path_factory.mktemp("order")
    tables = []
    for shuffled in (False, True):
        events = list(document["traceEvents"])
        if shuffled:
            random.Random(seed).shuffle(events)
        path = folder / f"{shuffled}.json"
        path.write_text(json.dumps({**document, "traceEvents": events}))
        data = RunReader(import_trace(path, folder / f"run-{shuffled}").directory).read("events").to_pylist()
        names = {e["event_id"]: (e["name"], e["start_ns"], e["duration_ns"]) for e in data}
        tables.append(
            Counter(
                (
                    names[e["event_id"]],
                    names.get(e["parent_id"]),
                    names.get(e["launch_id"]),
                    names.get(e["op_id"]),
                    e["step"],
                    e["self_ns"],
                )
                for e in data
            )
        )
    assert tables[0] == tables[1]


@pytest.mark.parametrize(
    ("dur", "reason"),
    [("1e400", "impossible_duration"), ("-1e400", "negative_duration"), ('"9e99"', "impossible_duration")],
)
def test_durations_beyond_all_numbers_go_to_quarantine(dur: str, reason: str, tmp_path: Path) -> None:
    bad = json.dumps(event(9)).replace('"dur": 5', f'"dur": {dur}')
    report, events = events_of(write(tmp_path, whole(*GOOD, bad)), tmp_path)
    assert (len(events), report.lost, report.exit_code) == (4, 1, 4)
    (row,) = RunReader(report.directory).read("quarantine").to_pylist()
    assert row["reason"] == reason
    assert json.loads(row["row"])["dur"] == dur.strip('"')


def test_durations_that_are_none_are_said(tmp_path: Path) -> None:
    odd = [
        json.dumps(event(9, dur="soon")),
        json.dumps(event(10, dur=True)),
        GOOD[0].replace('"dur": 5, ', ""),
    ]
    report, events = events_of(write(tmp_path, whole(*GOOD, *odd)), tmp_path)
    assert (len(events), report.repaired, report.exit_code) == (7, 2, 4)
    health = {row["kind"]: row["count"] for row in RunReader(report.directory).read("health").to_pylist()}
    assert (health["unreadable_durations"], health["no_duration"]) == (2, 1)


def test_a_missing_duration_alone_loses_nothing(tmp_path: Path) -> None:
    report, _ = events_of(write(tmp_path, whole(GOOD[0].replace('"dur": 5, ', ""))), tmp_path)
    health = {row["kind"]: row["count"] for row in RunReader(report.directory).read("health").to_pylist()}
    assert (report.exit_code, health["no_duration"]) == (0, 1)


def test_a_long_numeral_is_read_whole(tmp_path: Path) -> None:
    long = GOOD[0].replace('"dur": 5', '"dur": 1.' + "0" * 40 + "e5")
    _, events = events_of(write(tmp_path, whole(long)), tmp_path)
    assert events[0]["duration_ns"] == 100_000_000


@pytest.mark.parametrize(
    ("text", "kind", "count"),
    [
        ('{"traceEvents": [A\nA,A]}', "missing_comma", 3),
        ('{"traceEvents": [A,,A,A]}', "extra_comma", 3),
        ('{"traceEvents": [A,A,]}', "trailing_comma", 2),
        ("[A,A,]", "trailing_comma", 2),
        ('{"traceEvents": [A,A],}', "trailing_comma", 2),
        ('{"traceEvents": [A,A] "traceName": "x"}', "missing_comma", 2),
        ('{"traceEvents": [A], "traceEvents": [A,A]}', "second_event_list", 3),
        ("[A,A,", None, 2),
        ('{"traceEvents": [A,A]\n}\n', None, 2),
        ('{"traceEvents": [\nA ,\nA]\n, "traceName": "x"}\n', None, 2),
    ],
)
def test_leniency_is_said(text: str, kind: str | None, count: int, tmp_path: Path) -> None:
    report, events = events_of(write(tmp_path, text.replace("A", GOOD[0])), tmp_path)
    assert len(events) == count
    (manifest,) = RunReader(report.directory).manifests.values()
    assert [repair["kind"] for repair in manifest.repairs] == ([kind] if kind else [])
    assert report.exit_code == (4 if kind else 0)


@pytest.mark.parametrize("depth", [1_100, 3_000, 100_000])
@pytest.mark.parametrize("kind", ["lists", "objects"])
def test_args_nested_too_deep_are_kept_as_text(depth: int, kind: str, tmp_path: Path) -> None:
    deep = "[" * depth + "]" * depth if kind == "lists" else '{"a":' * depth + '"[}"' + "}" * depth
    odd = json.dumps(event(9)).replace('"External id": 9', f'"shape": {deep}, "External id": 9')
    report, events = events_of(write(tmp_path, whole(*GOOD[:2], odd, *GOOD[2:])), tmp_path)
    assert (len(events), report.lost, report.exit_code) == (5, 0, 4)
    mended = next(e for e in events if e["start_ns"] == 1_090_000)
    assert (mended["name"], mended["duration_ns"]) == ("aten::op9", 5_000)
    assert json.loads(mended["attributes"])["shape"] == deep
    (manifest,) = RunReader(report.directory).manifests.values()
    assert [(r["kind"], r["count"]) for r in manifest.repairs] == [("deep_nesting", 1)]


def test_events_within_events_nested_too_deep_are_quarantined(tmp_path: Path) -> None:
    deep = '{"args":' * 1_500 + "1" + "}" * 1_500
    odd = json.dumps(event(9)).replace('{"External id": 9}', deep)
    report, events = events_of(write(tmp_path, whole(*GOOD, odd)), tmp_path)
    assert [e["name"] for e in events] == [f"aten::op{n}" for n in range(4)]
    rows = RunReader(report.directory).read("quarantine").to_pylist()
    assert sum(row["row"].count('"args"') for row in rows) == 1_501
    assert report.exit_code == 4
