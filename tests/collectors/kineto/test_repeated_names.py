"""A name that stands twice in one JSON object is reported; the same name in two objects is not."""

from __future__ import annotations

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
