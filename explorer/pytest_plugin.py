"""A pytest plugin: profile a test and hold it to a budget.

    def test_step_is_fast(profile):
        with profile:
            for batch in batches:
                train_step(batch)
                profile.step()
        profile.assert_no("host_sync", "data_loader_stall")
        profile.assert_step_ms_ratio("runs/baseline", 1.05)

Installed with the package; it loads nothing until a test asks for the fixture `profile`.
"""

from __future__ import annotations

from types import TracebackType
from typing import TYPE_CHECKING, Any

import pytest

if TYPE_CHECKING:
    from explorer.analysis.run import Run
    from explorer.model.finding import Finding, Findings


class ProfiledTest:
    """The fixture: records what happens in its `with` block, then answers and asserts.

    Args:
        directory: where the run is written.
        options: passed to `neuron_profile`.
    """

    def __init__(self, directory: str, **options: Any) -> None:
        self.directory = directory
        self.options = options
        self._recorder: Any = None
        self._run: Run | None = None

    def __enter__(self) -> ProfiledTest:
        from explorer import neuron_profile

        if self._recorder is not None:
            raise RuntimeError("one `with profile:` block a test; use another test for another measurement")
        self._recorder = neuron_profile(self.directory, **self.options)
        # Start here, in this frame's caller: the lines of the test itself are what is recorded.
        self._recorder.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._recorder.stop()

    def step(self) -> None:
        """A step ends here."""
        self._recorder.step()

    @property
    def run(self) -> Run:
        """The run that was recorded. Raises RuntimeError before the block has ended or where nothing was recorded."""
        if self._run is None:
            if self._recorder is None or self._recorder.directory is None:
                raise RuntimeError("nothing was recorded: put the code under `with profile:`")
            from explorer.analysis.run import open_run

            self._run = open_run(self._recorder.directory)
        return self._run

    @property
    def findings(self) -> Findings:
        """What the rules found, worst first."""
        return self.run.bottlenecks()

    def assert_no(self, *rules: str, severity: str = "medium") -> None:
        """Fail when a rule has a finding of at least this severity (low, medium, high).

        Raises ValueError for a name that is no rule: a budget with a typing error would never fail.
        """
        from explorer.analysis.findings import all_rules

        known = {rule.name for rule in all_rules()}
        if unknown := [rule for rule in rules if rule not in known]:
            raise ValueError(f"there is no rule {unknown[0]!r}; rules: {', '.join(sorted(known))}")
        levels = ("low", "medium", "high")
        worst = [
            f for f in self.findings if f.rule in rules and levels.index(f.severity) >= levels.index(severity)
        ]
        if worst:
            pytest.fail("\n".join(_sentence(finding) for finding in worst), pytrace=False)

    def assert_step_ms(self, limit_ms: float) -> None:
        """Fail when the median step, with the recording cost taken off, takes longer."""
        step_ms = self.findings.step_ns / 1e6
        if step_ms > limit_ms:
            pytest.fail(f"the median step takes {step_ms:.3f} ms, allowed {limit_ms:g} ms", pytrace=False)

    def assert_step_ms_ratio(self, baseline: str, ratio: float) -> None:
        """Fail when the step is slower than `ratio` times the baseline run's, beyond noise.

        The whole 95 % interval of the change must lie above the limit; runs that cannot be compared are skipped with
        the reason.
        """
        from explorer.analysis.budget import Budget, check
        from explorer.analysis.run import open_run

        outcome = check(self.run, Budget(max_regression=ratio - 1.0), open_run(baseline))[0]
        if outcome.passed is None:
            pytest.skip(f"no comparison with {baseline}: {outcome.message}")
        if not outcome.passed:
            pytest.fail(f"slower than {baseline}: {outcome.message}", pytrace=False)


def _sentence(finding: Finding) -> str:
    from explorer.model.saving_text import saving_text

    line = finding.lines[0] if finding.lines else None
    place = f" at {line.file}:{line.line} `{line.code}`" if line else ""
    saves = f"; saves {saving_text(finding, trim=True)}" if finding.saves_time else ""
    return f"{finding.rule} ({finding.severity}): {finding.title}{place}{saves}. {finding.advice}"


@pytest.fixture
def profile(tmp_path_factory: pytest.TempPathFactory, request: pytest.FixtureRequest) -> ProfiledTest:
    """Record a block of the test: `with profile:`. Options of `neuron_profile` come from the marker
    `@pytest.mark.profile(record_shapes=True)`."""
    marker = request.node.get_closest_marker("profile")
    options = dict(marker.kwargs) if marker else {}
    name = "".join(c if c.isalnum() else "_" for c in request.node.name)[:60]
    return ProfiledTest(str(tmp_path_factory.mktemp(f"profile_{name}") / "run"), **options)


def pytest_configure(config: pytest.Config) -> None:
    """Make the marker known."""
    config.addinivalue_line(
        "markers", "profile(**options): options of neuron_profile for the fixture `profile`"
    )
