"""`neuron-explorer record`: the program is untouched, the run is complete."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from explorer.store.reader import RunReader

pytest.importorskip("torch")
pytestmark = pytest.mark.capture

TRAIN = """
import sys
import torch
weight = torch.ones(4, 4, requires_grad=True)
optimizer = torch.optim.SGD([weight], lr=0.1, foreach=False)
for step in range(6):
    loss = (torch.ones(2, 4) @ weight).sum()
    loss.backward()
    optimizer.step()
    optimizer.zero_grad()
print("said", sys.stdin.read(), sys.argv[1:])
print("complained", file=sys.stderr)
sys.exit(7)
"""


def record(
    folder: Path, text: str, *arguments: str, given: str = "", options: tuple[str, ...] = ()
) -> subprocess.CompletedProcess[str]:
    """Run a program text under `record`."""
    (folder / "program.py").write_text(text)
    return subprocess.run(
        [
            *(sys.executable, "-m", "explorer.cli.main", "record", "-o", str(folder / "run"), *options, "--"),
            *(sys.executable, str(folder / "program.py"), *arguments),
        ],
        input=given,
        capture_output=True,
        text=True,
        timeout=120,
        cwd=Path(__file__).resolve().parents[3],
        env={**os.environ, "OMP_NUM_THREADS": "1"},
        check=False,
    )


@pytest.fixture(scope="module")
def trained(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, subprocess.CompletedProcess[str]]:
    folder = tmp_path_factory.mktemp("trained")
    return folder, record(folder, TRAIN, "--epochs", "3", given="hello")


def test_output_input_arguments_and_exit_code_pass_through(
    trained: tuple[Path, subprocess.CompletedProcess[str]],
) -> None:
    folder, done = trained
    assert done.returncode == 7
    assert done.stdout == "said hello ['--epochs', '3']\n"
    assert done.stderr.splitlines() == ["complained", f"run: {folder / 'run'}"]
    run = RunReader(folder / "run")
    steps = [(s["step"], s["complete"]) for s in run.read("steps").to_pylist()]
    # Steps end with the optimizer's; the first also holds the set-up, the last is what comes after the loop.
    assert steps == [(0, False), (1, True), (2, True), (3, True), (4, True), (5, True), (6, False)]
    assert run.manifests[0].capture["steps_marked_by"] == "optimizer.step()"
    assert run.manifests[0].finished
    sites = {s["site_id"]: s for s in run.read("sites").to_pylist()}
    lines = {
        sites[e["site_id"]]["line"]
        for e in run.read("events").to_pylist()
        if e["name"] in ("aten::mm", "MmBackward0")
    }
    assert lines == {7}


def test_whole_optimizer_ranges_survive_the_cut(
    trained: tuple[Path, subprocess.CompletedProcess[str]],
) -> None:
    events = RunReader(trained[0] / "run").read("events").to_pylist()
    assert [e["step"] for e in events if e["name"] == "Optimizer.step#SGD.step"] == [0, 1, 2, 3, 4, 5]


def test_a_crash_is_the_programs_own_and_the_run_is_written(tmp_path: Path) -> None:
    done = record(tmp_path, "import torch\ntorch.ones(3) + 1\nraise ValueError('mine')\n")
    assert done.returncode == 1
    assert "ValueError: mine" in done.stderr
    assert "explorer" not in done.stderr.split("Traceback", 1)[1].split("ValueError")[0]
    assert "aten::add" in RunReader(tmp_path / "run").read("events").column("name").to_pylist()


WAITS = "import torch, time\ntorch.ones(3) + 1\nprint('ready', flush=True)\nfor _ in range(600): time.sleep(0.1)\n"


@pytest.fixture(autouse=True)
def interrupts() -> Iterator[None]:
    """A job in the background is started with Ctrl-C ignored, and so would its children be."""
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    yield
    signal.signal(signal.SIGINT, before)


def ended_by(command: list[str], number: int, folder: Path) -> tuple[int, list[str]]:
    """Exit status and what was said on stderr, of a command that is sent a signal once it is ready."""
    with subprocess.Popen(
        command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, cwd=folder
    ) as process:
        assert process.stdout is not None
        assert process.stderr is not None
        assert process.stdout.readline() == "ready\n"
        time.sleep(0.2)
        process.send_signal(number)
        return process.wait(60), process.stderr.read().splitlines()


@pytest.mark.parametrize("how", ["script", "module"])
@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGHUP, signal.SIGINT])
def test_a_signal_ends_it_as_it_would_have_and_the_open_window_is_saved(
    tmp_path: Path, number: signal.Signals, how: str
) -> None:
    (tmp_path / "program.py").write_text(WAITS)
    program = [sys.executable, *(["program.py"] if how == "script" else ["-m", "program"])]
    alone = ended_by(program, number, tmp_path)
    run = str(tmp_path / "run")
    recorded = ended_by(
        [str(Path(sys.executable).with_name("neuron-explorer")), "record", "-o", run, "--", *program],
        number,
        tmp_path,
    )
    assert recorded == (alone[0], [*alone[1], "run: run"])
    assert alone[0] == -number
    assert "aten::add" in RunReader(run).read("events").column("name").to_pylist()


def test_an_interrupt_that_the_program_catches_is_its_own_business(tmp_path: Path) -> None:
    text = WAITS.replace("for", "try:\n  for") + "except KeyboardInterrupt:\n  pass\n"
    (tmp_path / "program.py").write_text(text)
    command = [*(sys.executable, "-m", "explorer.cli.main", "record", "-o", str(tmp_path / "run"), "--")]
    assert (
        ended_by([*command, sys.executable, str(tmp_path / "program.py")], signal.SIGINT, Path.cwd())[0] == 0
    )


def test_a_program_without_torch_leaves_nothing_behind(tmp_path: Path) -> None:
    done = record(tmp_path, "print('hi')\n")
    assert (done.returncode, done.stdout) == (0, "hi\n")
    assert "nothing was recorded" in done.stderr
    assert not (tmp_path / "run").exists()


def test_an_unwritable_output_is_said_before_the_program_runs(tmp_path: Path) -> None:
    (tmp_path / "run").write_text("a file")
    done = record(tmp_path, "print('hi')\n")
    assert (done.returncode, done.stdout) == (2, "")
    assert len(done.stderr.splitlines()) == 1


def test_a_missing_program_is_a_usage_error(tmp_path: Path) -> None:
    done = subprocess.run(
        [
            sys.executable,
            "-m",
            "explorer.cli.main",
            "record",
            "-o",
            str(tmp_path / "run"),
            "--",
            "no-such-program",
        ],
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    assert done.returncode == 2
    assert "Cannot run no-such-program" in done.stderr


def test_a_program_that_leaves_by_os_exit_is_written(tmp_path: Path) -> None:
    done = record(tmp_path, "import os, torch\ntorch.ones(3) + 1\nos._exit(5)\n")
    assert done.returncode == 5
    assert "aten::add" in RunReader(tmp_path / "run").read("events").column("name").to_pylist()


def test_a_killed_program_is_told_from_one_without_torch(tmp_path: Path) -> None:
    done = record(
        tmp_path, "import os, signal, torch\ntorch.ones(3) + 1\nos.kill(os.getpid(), signal.SIGKILL)\n"
    )
    assert done.returncode == -signal.SIGKILL
    assert "nothing was recorded: signal 9 ended the program before" in done.stderr


def test_every_process_of_a_rank_has_a_run_of_its_own_and_is_named(tmp_path: Path) -> None:
    text = """
import torch
import torch.multiprocessing as mp
def work(number):
    torch.ones(3) + number
if __name__ == "__main__":
    mp.spawn(work, nprocs=2)
"""
    done = record(tmp_path, text)
    assert done.returncode == 0, done.stderr
    assert done.stderr.splitlines() == [
        *(f"neuron-explorer: another process of the program: {tmp_path / name}" for name in ("run-2",)),
        f"run: {tmp_path / 'run'}",
    ]
    ids = {RunReader(tmp_path / name).manifests[0].host["process_id"] for name in ("run", "run-2")}
    assert len(ids) == 2


def test_two_recordings_of_one_name_at_once_are_not_taken_for_each_other(tmp_path: Path) -> None:
    """Each waits until the other has begun, so both write beside each other."""
    text = """
import os, sys, time
import torch
torch.ones(4) + 1
mine, other = (os.path.join(os.path.dirname(__file__), name) for name in sys.argv[1:])
open(mine, "w").close()
for _ in range(600):
    if os.path.exists(other):
        break
    time.sleep(0.1)
"""
    for name in ("one", "two"):
        (tmp_path / f"{name}.py").write_text(text)
    both = [
        subprocess.Popen(
            [
                *(sys.executable, "-m", "explorer.cli.main", "record", "-o", str(tmp_path / "run"), "--"),
                *(sys.executable, str(tmp_path / f"{mine}.py"), f"{mine}.begun", f"{other}.begun"),
            ],
            stderr=subprocess.PIPE,
            text=True,
            cwd=Path(__file__).resolve().parents[3],
            env={**os.environ, "OMP_NUM_THREADS": "1"},
        )
        for mine, other in (("one", "two"), ("two", "one"))
    ]
    said = [process.communicate(timeout=180)[1].splitlines() for process in both]
    assert [process.returncode for process in both] == [0, 0]
    assert sorted(said) == [[f"run: {tmp_path / 'run'}"], [f"run: {tmp_path / 'run-2'}"]]
    for (line,), program in zip(said, ("one.py", "two.py"), strict=True):
        (manifest,) = RunReader(line.removeprefix("run: ")).manifests.values()
        assert any(word.endswith(program) for word in manifest.command)
