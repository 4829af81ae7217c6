"""The files a program opens while it is recorded behave as ever, and what they cost is known."""

from __future__ import annotations

import builtins
import io
import json
import os
from collections.abc import Iterator
from pathlib import Path

import pytest

pytest.importorskip("torch")

from explorer.collectors.capture.file_io import FileIoRecorder

MODES = ["r", "rb", "w", "wb", "a", "ab", "x", "r+", "rb+", "w+b", "rt", "U", "rw", "", "b", "rbt", "q"]


pytestmark = pytest.mark.filterwarnings("ignore:line buffering")


@pytest.fixture
def recorder() -> Iterator[FileIoRecorder]:
    recorder = FileIoRecorder()
    recorder.start()
    recorder.enabled = True
    yield recorder
    recorder.stop()


def outcome(opener: object, path: Path, mode: str, **options: object) -> object:
    path.write_text("one\r\ntwo\n") if "x" not in mode else path.unlink(missing_ok=True)
    try:
        with opener(path, mode, **options) as file:  # type: ignore[operator]
            kinds = [type(file), type(getattr(file, "buffer", None))]
            facts = [file.mode, getattr(file, "encoding", None), getattr(file, "line_buffering", None)]
            if file.readable():
                facts.append(file.read())
            if file.writable():
                facts.append(file.write("é" if isinstance(file, io.TextIOBase) else b"z"))
        return kinds, facts, path.read_bytes()
    except Exception as error:
        return type(error), str(error)


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize(
    "options",
    [{}, {"buffering": 0}, {"buffering": 1}, {"buffering": 100}, {"encoding": "utf-8"}, {"newline": ""}],
)
def test_files_are_what_the_real_open_gives(
    recorder: FileIoRecorder, tmp_path: Path, mode: str, options: dict[str, object]
) -> None:
    from explorer.collectors.capture.file_io import _open

    assert builtins.open is not _open
    assert outcome(builtins.open, tmp_path / "file", mode, **options) == outcome(
        _open, tmp_path / "file", mode, **options
    )


def test_a_missing_file_is_the_same_error(recorder: FileIoRecorder, tmp_path: Path) -> None:
    with pytest.raises(FileNotFoundError) as caught, builtins.open(tmp_path / "none"):
        pass
    assert caught.value.filename == str(tmp_path / "none")


def test_reads_and_writes_are_recorded_with_path_and_size(recorder: FileIoRecorder, tmp_path: Path) -> None:
    path = tmp_path / "data.bin"
    with builtins.open(path, "wb") as file:
        file.write(b"x" * 100_000)
    with path.open("rb") as file:
        assert len(file.read()) == 100_000
    sizes: dict[str, int] = {}
    for event in recorder.take():
        assert event.category == "io"
        assert json.loads(event.attributes or "")["path"] == os.fspath(path)
        assert event.duration_ns >= 0
        sizes[event.name] = sizes.get(event.name, 0) + (event.size_bytes or 0)
    assert sizes.pop("close", 0) == 0
    assert sizes == {"open": 0, "write": 100_000, "read": 100_000}


def test_saving_a_checkpoint_is_one_event(recorder: FileIoRecorder, tmp_path: Path) -> None:
    import torch

    torch.save(torch.zeros(1000), tmp_path / "model.pt")
    events = [event for event in recorder.take() if event.name == "torch.save"]
    assert [event.size_bytes for event in events] == [(tmp_path / "model.pt").stat().st_size]
    assert torch.load(tmp_path / "model.pt").shape == (1000,)


def test_everything_is_put_back() -> None:
    import torch

    before = builtins.open, io.open, torch.save, torch.serialization.save
    recorder = FileIoRecorder()
    recorder.start()
    assert builtins.open is not before[0]
    recorder.stop()
    assert (builtins.open, io.open, torch.save, torch.serialization.save) == before
