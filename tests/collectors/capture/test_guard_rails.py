"""Whatever the program does while it is recorded: it behaves as ever, and what was recorded is kept."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import threading
import warnings
from pathlib import Path
from typing import Any

import pytest

torch = pytest.importorskip("torch")

from explorer import neuron_profile  # noqa: E402
from explorer.model.errors import UsageError  # noqa: E402
from explorer.store.reader import RunReader, is_run  # noqa: E402

pytestmark = pytest.mark.capture


def names(directory: Any) -> list[str]:
    return RunReader(str(directory)).read("events").column("name").to_pylist()


def work() -> None:
    torch.ones(3) + 1


def script(folder: Path, text: str, expected: int = 0) -> subprocess.CompletedProcess[str]:
    """Run a program in its own process; RUN is its run directory."""
    (folder / "program.py").write_text("import sys\nRUN = sys.argv[1]\n" + text)
    done = subprocess.run(
        [sys.executable, str(folder / "program.py"), str(folder / "run")],
        capture_output=True,
        text=True,
        timeout=100,
        check=False,
        env={**os.environ, "OMP_NUM_THREADS": "1", "PYTHONPATH": str(Path(__file__).resolve().parents[3])},
    )
    assert done.returncode == expected, done.stderr
    return done


def test_a_nested_capture_is_refused_and_the_outer_one_loses_nothing(tmp_path: Path) -> None:
    with neuron_profile(tmp_path / "outer") as outer:
        work()
        with (  # noqa: PT031
            pytest.warns(RuntimeWarning, match="already running"),
            neuron_profile(tmp_path / "inner") as inner,
        ):
            torch.ones(3) * 2
            inner.step()
        torch.ones(3) - 3
    assert inner.directory is None
    assert not (tmp_path / "inner").exists()
    assert {"aten::add", "aten::mul", "aten::sub"} <= set(names(outer.directory))


def test_a_capture_under_a_torch_profiler_is_refused_and_that_one_loses_nothing(tmp_path: Path) -> None:
    with torch.profiler.profile(activities=[torch.profiler.ProfilerActivity.CPU]) as other:
        work()
        with pytest.warns(RuntimeWarning, match="another torch profiler"), neuron_profile(tmp_path / "run"):
            torch.ones(3) * 2
    assert {"aten::add", "aten::mul"} <= {event.name for event in other.events()}


def test_a_capture_in_a_second_thread_is_refused(tmp_path: Path) -> None:
    caught: list[warnings.WarningMessage] = []

    def second() -> None:
        with warnings.catch_warnings(record=True) as seen:
            warnings.simplefilter("always")
            with neuron_profile(tmp_path / "second"):
                work()
            caught.extend(seen)

    with neuron_profile(tmp_path / "first") as prof:
        thread = threading.Thread(target=second)
        thread.start()
        thread.join()
        work()
    assert [str(warning.message) for warning in caught] == [
        "neuron_profile records nothing here: a capture is already running in this process."
    ]
    assert not (tmp_path / "second").exists()
    assert "aten::add" in names(prof.directory)


def test_stopping_in_another_thread_is_refused_and_nothing_is_lost(tmp_path: Path) -> None:
    prof = neuron_profile(tmp_path / "run").start()
    work()
    with pytest.warns(RuntimeWarning, match="another thread"):  # noqa: PT031
        thread = threading.Thread(target=prof.stop)
        thread.start()
        thread.join()
    torch.ones(3) * 2
    prof.stop()
    assert {"aten::add", "aten::mul"} <= set(names(tmp_path / "run"))


@pytest.mark.parametrize("error", [ValueError, KeyboardInterrupt, SystemExit])
def test_exceptions_pass_through_and_the_run_is_written(tmp_path: Path, error: type[BaseException]) -> None:
    with pytest.raises(error), neuron_profile(tmp_path / "run"):  # noqa: PT012
        work()
        raise error
    run = RunReader(str(tmp_path / "run"))
    assert run.manifests[0].finished
    assert "aten::add" in names(tmp_path / "run")


def test_stopping_twice_and_stopping_before_the_start_do_nothing(tmp_path: Path) -> None:
    prof = neuron_profile(tmp_path / "run")
    prof.stop()
    prof.step()
    with prof:
        work()
    prof.stop()
    assert RunReader(str(tmp_path / "run")).manifests[0].finished


def test_previous_trace_functions_are_restored(tmp_path: Path) -> None:
    profiled: list[str] = []

    def profile(frame: Any, event: str, argument: Any) -> None:
        profiled.append(event)

    before = sys.gettrace(), threading.gettrace()
    sys.setprofile(profile)
    try:
        with neuron_profile(tmp_path / "run"):
            work()
        assert sys.getprofile() is profile
    finally:
        sys.setprofile(None)
    assert (sys.gettrace(), threading.gettrace()) == before


def test_a_forked_child_records_nothing_and_the_parent_everything(tmp_path: Path) -> None:
    script(
        tmp_path,
        """
import os, torch
from explorer import neuron_profile
with neuron_profile(RUN) as prof:
    torch.ones(3) + 1
    child = os.fork()
    if child == 0:
        torch.ones(3) * 2
        assert sys.gettrace() is None
        prof.step(); prof.stop()
        os._exit(5)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 5
    torch.ones(3) - 1
""",
    )
    seen = set(names(tmp_path / "run"))
    assert {"aten::add", "aten::sub"} <= seen
    assert "aten::mul" not in seen


FORKING = """
import atexit, os, sys, torch
torch.ones(3) + 1
atexit.register(print, "left")
for code in (4, 0):
    sys.stdout.flush()
    child = os.fork()
    if child == 0:
        print("child", (torch.ones(3) * 2).sum().item())
        sys.exit(code)
    print("code", os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]))
"""


def test_a_forked_child_ends_as_it_would_alone(tmp_path: Path) -> None:
    """Torch's native exit code would wait for threads of its profiler, which the child does not have."""
    (tmp_path / "alone.py").write_text(FORKING)
    alone = recorded_and_alone(tmp_path)
    assert alone == "child 6.0\nleft\ncode 4\nchild 6.0\nleft\ncode 0\nleft\n"
    seen = names(tmp_path / "run")
    assert "aten::add" in seen
    assert "aten::mul" not in seen


def test_a_child_forked_after_the_capture_ends_as_it_would_alone(tmp_path: Path) -> None:
    done = script(
        tmp_path,
        "import torch\nfrom explorer import neuron_profile\nwith neuron_profile(RUN): torch.ones(3) - 1\n"
        + FORKING,
    )
    assert done.stdout == "child 6.0\nleft\ncode 4\nchild 6.0\nleft\ncode 0\nleft\n"


def test_the_program_does_not_see_the_threads_of_the_recording(tmp_path: Path) -> None:
    (tmp_path / "alone.py").write_text(
        """
import sys, threading, time, torch
traced = []
threading.settrace(lambda frame, event, argument: traced.append(frame.f_code.co_filename))
def busy():
    end = time.monotonic() + 1.2
    while time.monotonic() < end:
        sum(range(1000))
busy()
torch.ones(3) + 1
print(threading.active_count())
own = threading.Thread(target=torch.ones, args=(3,))
own.start()
for thread in threading.enumerate():
    if thread is not threading.main_thread():
        thread.join()
print("joined", [thread.name for thread in threading.enumerate()])
print(any("explorer/collectors" in file for file in traced))
"""
    )
    assert recorded_and_alone(tmp_path) == "1\njoined ['MainThread']\nFalse\n"
    assert "aten::add" in names(tmp_path / "run")


def recorded_and_alone(folder: Path) -> str:
    """What `alone.py` prints, with `record` and without."""
    environment = {
        **os.environ,
        "OMP_NUM_THREADS": "1",
        "PYTHONPATH": str(Path(__file__).resolve().parents[3]),
    }
    record = ["-m", "explorer.cli.main", "record", "-o", str(folder / "run"), "--", sys.executable]
    printed = []
    for before in ([], record):
        with subprocess.Popen(
            [sys.executable, *before, str(folder / "alone.py")],
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            env=environment,
            start_new_session=True,
        ) as process:
            try:
                output, errors = process.communicate(timeout=60)
            except subprocess.TimeoutExpired:
                os.killpg(process.pid, signal.SIGKILL)
                raise
        assert process.returncode == 0, errors
        printed.append(output)
    assert printed[0] == printed[1]
    return printed[0]


def test_windows_survive_a_process_that_is_killed(tmp_path: Path) -> None:
    script(
        tmp_path,
        """
import os, torch
from explorer import neuron_profile
with neuron_profile(RUN) as prof:
    for _ in range(2):
        torch.ones(3) + 1
        prof.step()
    torch.ones(3) * 2
    os.kill(os.getpid(), 9)
""",
        expected=-9,
    )
    run = RunReader(str(tmp_path / "run"))
    assert not run.manifests[0].finished
    assert [step["step"] for step in run.read("steps").to_pylist()] == [0, 1]
    seen = set(names(tmp_path / "run"))
    assert "aten::add" in seen
    assert "aten::mul" not in seen


def test_a_finished_run_is_never_overwritten(tmp_path: Path) -> None:
    for _ in range(2):
        with neuron_profile(tmp_path / "run") as prof:
            work()
    assert prof.directory == str(tmp_path / "run-2")
    assert is_run(tmp_path / "run")


def test_an_unwritable_directory_is_one_clear_error(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(UsageError, match="Cannot write the run"), neuron_profile(tmp_path / "file"):
        pass
    with neuron_profile(tmp_path / "run"):
        work()
    assert is_run(tmp_path / "run")


def test_a_run_that_cannot_be_finished_is_said_and_the_program_goes_on(tmp_path: Path) -> None:
    done = script(
        tmp_path,
        """
import shutil, torch
from explorer import neuron_profile
with neuron_profile(RUN) as prof:
    for _ in range(3):
        torch.ones(3) + 1
        prof.step()
        shutil.rmtree(RUN, ignore_errors=True)
        open(RUN, "a").close()
print("went on")
""",
    )
    assert done.stdout == "went on\n"
    assert "neuron-explorer: the run is incomplete: NotADirectoryError: " in done.stderr
    assert "Traceback" not in done.stderr


def test_the_decorator_records_every_call(tmp_path: Path) -> None:
    @neuron_profile(tmp_path / "run")
    def train(value: int) -> int:
        """Doc."""
        torch.ones(3) + value
        return value * 2

    assert train.__name__ == "train"
    assert [train(1), train(2)] == [2, 4]
    assert "aten::add" in names(tmp_path / "run")
    assert "aten::add" in names(tmp_path / "run-2")


def test_a_schedule_chooses_the_steps_and_the_rest_is_said(tmp_path: Path) -> None:
    schedule = torch.profiler.schedule(skip_first=1, wait=1, warmup=1, active=2, repeat=2)
    with neuron_profile(tmp_path / "run", schedule=schedule) as prof:
        for _ in range(12):
            work()
            prof.step()
    run = RunReader(str(tmp_path / "run"))
    steps = run.read("steps").to_pylist()
    assert [step["step"] for step in steps if step["complete"]] == [3, 4, 7, 8]
    assert [step["window"] for step in steps if step["complete"]] == [0, 0, 1, 1]
    counts: dict[int, int] = {}
    for event in run.read("events").to_pylist():
        if event["name"] == "aten::add":
            counts[event["step"]] = counts.get(event["step"], 0) + 1
    assert counts == {3: 1, 4: 1, 7: 1, 8: 1}
    health = {row["kind"]: row for row in run.read("health").to_pylist()}
    assert health["not_captured"]["count"] == 8
    assert "schedule" in health["not_captured"]["message"]


def test_recording_stops_at_the_limit_and_says_so(tmp_path: Path) -> None:
    with neuron_profile(tmp_path / "run", max_events=60) as prof:
        for _ in range(30):
            for _ in range(5):
                work()
            prof.step()
    run = RunReader(str(tmp_path / "run"))
    count = run.dataset("events").count_rows()
    assert 60 <= count < 120
    health = {row["kind"]: row for row in run.read("health").to_pylist()}
    recorded = run.manifests[0].capture["steps_recorded"]
    assert health["not_captured"]["count"] == 30 - recorded
    assert "60 events" in health["not_captured"]["message"]


def test_the_program_gets_its_callback(tmp_path: Path) -> None:
    ready: list[str] = []
    with neuron_profile(tmp_path / "run", on_run_ready=ready.append):
        work()
    assert ready == [str(tmp_path / "run")]


def test_the_programs_own_profiler_comes_first_and_recording_goes_on_after_it(tmp_path: Path) -> None:
    with neuron_profile(tmp_path / "run") as prof:
        for step in range(8):
            if step == 3:
                work()
                with torch.profiler.profile(activities=[torch.profiler.ProfilerActivity.CPU]) as own:
                    torch.ones(3) * 2
            else:
                work()
            prof.step()
    assert "aten::mul" in {event.name for event in own.events()}
    run = RunReader(str(tmp_path / "run"))
    assert "aten::mul" not in names(tmp_path / "run")
    steps = {row["step"]: row["complete"] for row in run.read("steps").to_pylist()}
    assert [step for step, complete in steps.items() if complete] == [0, 1, 2, 4, 5, 6, 7]
    assert names(tmp_path / "run").count("aten::add") == 8
    health = {row["kind"]: row for row in run.read("health").to_pylist()}
    assert health["program_profiler"]["count"] == 1
