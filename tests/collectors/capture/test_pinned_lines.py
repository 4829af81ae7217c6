"""Rare calls that matter have their exact line though line recording rests: collectives, the optimizer, files, batches."""

from __future__ import annotations

import sys
import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

torch = pytest.importorskip("torch")

from explorer import neuron_profile  # noqa: E402
from explorer.collectors.lines.records import LineRecorder  # noqa: E402
from explorer.store.reader import RunReader  # noqa: E402

pytestmark = [
    pytest.mark.capture,
    pytest.mark.skipif(sys.version_info >= (3, 12), reason="check_back_off covers sys.monitoring"),
]


def rest(recorder: LineRecorder) -> None:
    """Lines rest on this thread until the calling function ends, and are not taken up before."""
    own: Any = recorder._own_thread()  # type: ignore[attr-defined]
    own.budget._credit.credit_ns = -1e15
    frame = sys._getframe(1)
    own.rest.begin(sys._getframe(), frame)
    assert not recorder.take_up(frame)


def rows(run: RunReader, name: str, first: int) -> list[tuple[str, int, str]]:
    """(function, line after `first`, precision) of each event of this name, in order."""
    sites = {row["site_id"]: row for row in run.read("sites").to_pylist()}
    events = sorted(run.read("events").to_pylist(), key=lambda event: event["start_ns"])
    return [
        (site["function"], site["line"] - first, event["precision"])
        for event in events
        if event["name"] == name
        for site in [sites[event["site_id"]]]
    ]


def recorded(tmp_path: Path, work: Callable[[LineRecorder], None], **settings: Any) -> RunReader:
    with neuron_profile(tmp_path / "run", **settings) as prof:
        recorder = prof._session.windows.recorder
        assert recorder is not None
        work(recorder)
    return RunReader(str(prof.directory))


@pytest.fixture
def group(tmp_path: Path) -> Iterator[None]:
    distributed = torch.distributed
    if not distributed.is_gloo_available():
        pytest.skip("this torch has no gloo")
    distributed.init_process_group("gloo", init_method=f"file://{tmp_path}/store", rank=0, world_size=1)
    yield
    distributed.destroy_process_group()


def communicate(recorder: LineRecorder) -> None:
    rest(recorder)
    tensor = torch.ones(5)
    torch.distributed.all_reduce(tensor)
    tensor.add(1)
    torch.distributed.barrier()


def test_collectives_are_exact_and_what_surrounds_them_is_coarse(group: None, tmp_path: Path) -> None:
    run = recorded(tmp_path, communicate)
    first = communicate.__code__.co_firstlineno
    assert rows(run, "c10d::allreduce_", first) == [("communicate", 3, "exact")]
    assert rows(run, "aten::add", first) == [("communicate", 0, "coarse")]
    assert rows(run, "c10d::barrier", first) == [("communicate", 5, "exact")]


def test_collectives_of_another_thread_are_exact(group: None, tmp_path: Path) -> None:
    def work(recorder: LineRecorder) -> None:
        thread = threading.Thread(target=communicate, args=(recorder,))
        thread.start()
        thread.join()

    run = recorded(tmp_path, work, threads="all")
    first = communicate.__code__.co_firstlineno
    assert rows(run, "c10d::allreduce_", first) == [("communicate", 3, "exact")]
    assert rows(run, "aten::add", first) == [("communicate", 0, "coarse")]


def inner() -> None:
    torch.distributed.all_reduce(torch.ones(5))
    torch.ones(5).sub(1)


def outer(recorder: LineRecorder) -> None:
    rest(recorder)
    inner()
    torch.ones(5).mul(2)


def test_a_call_deeper_than_what_rests_has_its_own_function(group: None, tmp_path: Path) -> None:
    run = recorded(tmp_path, outer)
    assert rows(run, "c10d::allreduce_", inner.__code__.co_firstlineno) == [("inner", 1, "exact")]
    first = outer.__code__.co_firstlineno
    # Of what rests, only the function is known.
    assert rows(run, "aten::sub", first) == [("outer", 0, "coarse")]
    assert rows(run, "aten::mul", first) == [("outer", 0, "coarse")]


def debt_is_paid(recorder: LineRecorder) -> None:
    rest(recorder)
    torch.distributed.all_reduce(torch.ones(5))
    recorder._own_thread().budget._credit.credit_ns = 0.0  # type: ignore[attr-defined]


def exact_again(recorder: LineRecorder) -> None:
    debt_is_paid(recorder)
    torch.ones(5).div(2)


def test_the_rest_ends_as_it_would_have(group: None, tmp_path: Path) -> None:
    run = recorded(tmp_path, exact_again)
    assert rows(run, "aten::div", exact_again.__code__.co_firstlineno) == [("exact_again", 2, "exact")]


def step(recorder: LineRecorder) -> None:
    weight = torch.nn.Parameter(torch.ones(3))
    weight.grad = torch.ones(3)
    optimizer = torch.optim.SGD([weight], lr=0.1, foreach=False)
    rest(recorder)
    optimizer.step()
    torch.ones(3).mul(2)


def test_the_optimizers_step_is_exact(tmp_path: Path) -> None:
    run = recorded(tmp_path, step)
    first = step.__code__.co_firstlineno
    assert rows(run, "Optimizer.step#SGD.step", first) == [("step", 5, "exact")]
    assert rows(run, "aten::add_", first) == [("step", 5, "exact")]
    assert rows(run, "aten::mul", first) == [("step", 0, "coarse")]


def files(recorder: LineRecorder, path: str) -> None:
    rest(recorder)
    with open(path, "wb", buffering=4096) as file:
        file.write(b"x" * 10_000)
    torch.save(torch.ones(2), path)


def test_files_are_exact(tmp_path: Path) -> None:
    run = recorded(tmp_path, lambda recorder: files(recorder, str(tmp_path / "file")))
    first = files.__code__.co_firstlineno
    assert rows(run, "open", first)[0] == ("files", 2, "exact")
    assert rows(run, "write", first)[0] == ("files", 3, "exact")
    assert rows(run, "torch.save", first) == [("files", 4, "exact")]


class Numbers(torch.utils.data.Dataset):
    def __len__(self) -> int:
        return 2

    def __getitem__(self, index: int) -> torch.Tensor:
        return torch.ones(2) * index


def batches(recorder: LineRecorder) -> None:
    loader = iter(torch.utils.data.DataLoader(Numbers(), batch_size=1))
    rest(recorder)
    next(loader)
    torch.ones(3).sub(1)


def test_the_wait_for_a_batch_has_its_likely_line(tmp_path: Path) -> None:
    run = recorded(tmp_path, batches)
    first = batches.__code__.co_firstlineno
    name = "enumerate(DataLoader)#_SingleProcessDataLoaderIter.__next__"
    # The dataset is code of the program: what runs in there is not at this line.
    assert rows(run, name, first) == [("batches", 3, "inferred")]
    assert rows(run, "aten::sub", first) == [("batches", 0, "coarse")]
