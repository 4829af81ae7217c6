"""A name that stands twice in one JSON object is reported; the same name in two objects is not."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from explorer.collectors.import_trace import import_trace
from explorer.store.reader import RunReader

GOOD = '{"ph":"X","cat":"cpu_op","name":"a","pid":1,"tid":1,"ts":1,"dur":1,"args":{"name":"b","Input Strides":[]}}'


@pytest.mark.parametrize(
    ("row", "repeated"),
    [
        ('{"ph":"X","name":"a","name":"b","pid":1,"tid":1,"ts":1,"dur":1}', True),
        ('{"ph":"X","name":"a","pid":1,"tid":1,"ts":1,"dur":1,"args":{"x":1,"y":2,"x":3}}', True),
        ('{"ph":"X","name":"a","pid":1,"tid":1,"ts":1,"dur":1,"args":{"x":{"y":1,"z":2,"y":3}}}', True),
        ('{"ph":"M","name":"process_name","name":"x","pid":1,"args":{"name":"p"}}', True),
        ('{"ph":"X","name":"a","pid":1,"tid":1,"ts":1,"dur":1,"args":{"x":[{"y":1},{"y":2}]}}', False),
        (
            '{"ph":"X","name":"a","pid":1,"tid":1,"ts":1,"dur":1,"args":{"same begin 1":1,"same begin 2":1}}',
            False,
        ),
        (
            '{"ph":"X","name":"a","pid":1,"tid":1,"ts":1,"dur":1,"args":{"same begin 1":1,"same begin 1":1}}',
            True,
        ),
        (
            '{"ph":"X","name":"\\"name\\":","pid":1,"tid":1,"ts":1,"dur":1,"args":{"x":"{\\"x\\":1}"}}',
            False,
        ),
    ],
)
@pytest.mark.parametrize("spread", [False, True])
def test_repeated_names(tmp_path: Path, row: str, repeated: bool, spread: bool) -> None:
    if spread:
        row = row.replace('":', '": ').replace(',"', ',\n "') if "\\" not in row else row
    text = '{"traceEvents": [\n' + ",\n".join([GOOD, row, GOOD, row, GOOD]) + "\n]}"
    trace = tmp_path / "t.json"
    trace.write_text(text)
    report = import_trace(trace, tmp_path / "run")
    (manifest,) = RunReader(report.directory).manifests.values()
    offset = text.encode().index(row.encode())
    wanted = [{"kind": "repeated_name", "count": 2, "first_offset": offset}] if repeated else []
    assert manifest.repairs == wanted
    assert report.exit_code == (4 if repeated else 0)


@pytest.mark.parametrize("spread", [False, True])
def test_the_last_value_counts_and_earlier_ones_are_kept(tmp_path: Path, spread: bool) -> None:
    row = (
        '{"ph":"X","cat":"cpu_op","name":"first","pid":1,"tid":1,"ts":5,"ts":7.123456,"dur":1,"name":"last",'
        '"args":{"External id":4,"Sequence number":1,"Sequence number":2,"External id":5}}'
    )
    escaped = row.replace('"name":"last"', '"na\\u006de":"last"')
    text = '{"traceEvents": [' + ",\n".join([GOOD, row, escaped, GOOD]) + "]}"
    if spread:
        text = text.replace('":', '": ')
    (tmp_path / "t.json").write_text(text)
    report = import_trace(tmp_path / "t.json", tmp_path / "run")
    reader = RunReader(report.directory)
    assert reader.manifests[0].repairs[0]["count"] == 2
    events = sorted(reader.read("events").to_pylist(), key=lambda event: event["event_id"])
    for event in events[1:3]:
        assert (event["name"], event["start_ns"]) == ("last", 7123)
        kept = json.loads(event["attributes"])
        assert (kept["External id"], kept["Sequence number"]) == (5, 2)
        assert kept["repeated_names"] == {
            "name": ["first"],
            "ts": [5],
            "Sequence number": [1],
            "External id": [4],
        }


def test_repeated_metadata_is_said(tmp_path: Path) -> None:
    (tmp_path / "t.json").write_text(
        '{"distributedInfo":{"rank":1,"world_size":2},"traceEvents":['
        + GOOD
        + '],"distributedInfo":{"rank":0}}'
    )
    report = import_trace(tmp_path / "t.json", tmp_path / "run")
    reader = RunReader(report.directory)
    (manifest,) = reader.manifests.values()
    assert [repair["kind"] for repair in manifest.repairs] == ["repeated_metadata"]
    assert report.exit_code == 4
    assert "rank_not_used" in reader.read("health")["kind"].to_pylist()
