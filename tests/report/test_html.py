"""The HTML report: complete, escaped, alone, and alive in a real browser."""

from __future__ import annotations

import json
import re
from dataclasses import replace
from html.parser import HTMLParser
from pathlib import Path

import pytest

from explorer.analysis.rule import NEEDS
from explorer.analysis.run import Run, open_run
from explorer.analysis.source_view import CodeFile, CodeLine
from explorer.cli.main import main
from explorer.model.finding import Findings, NotChecked, Saving
from explorer.report.html import html_report
from explorer.report.html.figures import roofline_figure
from explorer.report.html.findings_section import findings_section
from explorer.report.html.markup import Markup, json_script, tag, text
from explorer.report.html.tables_section import LINES, MODULES, table_section
from explorer.report.markdown import markdown_report
from explorer.store.writer import RunWriter
from tests.agent.conftest import write_run
from tests.analysis.diff.test_comparison import write
from tests.analysis.ranks.job import Job
from tests.report.browser import open_page

EVIL = '<script>alert("x")</script>'


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> Run:
    return open_run(write_run(tmp_path_factory.mktemp("report") / "run"))


@pytest.fixture(scope="module")
def page(run: Run) -> str:
    return html_report(run)


class Counter(HTMLParser):
    """Tags that stay open, links that leave, ids."""

    VOID = ("meta", "input", "br", "link", "img")

    def __init__(self) -> None:
        super().__init__()
        self.stack: list[str] = []
        self.faults: list[str] = []
        self.ids: list[str] = []

    def handle_starttag(self, name: str, attributes: list[tuple[str, str | None]]) -> None:
        for key, value in attributes:
            if key == "id":
                self.ids.append(str(value))
            if key in ("src", "href") and not str(value).startswith("#"):
                self.faults.append(f"{name} {key}={value}")
        if name not in self.VOID:
            self.stack.append(name)

    def handle_endtag(self, name: str) -> None:
        if not self.stack or self.stack.pop() != name:
            self.faults.append(f"</{name}>")


def parsed(page: str) -> Counter:
    counter = Counter()
    counter.feed(page)
    return counter


def test_the_page_is_well_formed_and_refers_to_nothing_outside(page: str) -> None:
    counter = parsed(page)
    assert counter.faults == []
    assert counter.stack == []
    assert len(counter.ids) == len(set(counter.ids))
    assert "default-src 'none'" in page
    assert len(page) < 6_000_000


def test_the_answer_comes_first(page: str) -> None:
    order = [
        page.index(f'id="{name}"')
        for name in (
            "findings",
            "steps",
            "timeline",
            "lines",
            "ops",
            "kernels",
            "health",
            "environment",
            "method",
        )
    ]
    assert order == sorted(order)
    assert "train.py:9" in page[: page.index('id="steps"')]
    assert '<div class="row here"><span class="number">9</span>' in page


def test_every_link_leads_to_a_part(page: str) -> None:
    ids = parsed(page).ids
    links = re.findall(r'href="#([^"]+)"', page)
    assert len(links) >= 9
    assert set(links) <= set(ids)
    figures = re.search(r'id="figures">(.*?)</script>', page)
    assert figures is not None
    assert {f"plot-{name}" for name in json.loads(figures[1])} <= set(ids)


def test_what_no_row_has_is_no_column() -> None:
    rows = [
        {"path": "", "class_name": "Net", "self_ns": 0, "total_ns": 35_000_000, "device_ns": 0, "share": 1.0}
    ]
    section = table_section("modules", "Modules", rows, MODULES, "None.")
    heads = re.findall(r'<button type="button">(.*?)</button>', section)
    assert heads == ["module", "class", "host total", "share"]
    assert "35.0 ms</td>" in section
    assert "--share:1.0000" in section


def test_long_places_keep_their_end() -> None:
    place = "a/very/long/way/down/to/the/package/of/the/model.py:1234"
    section = table_section("lines", "Lines", [{"place": place, "code": "x"}], LINES, "None.")
    assert (
        f'<td class="text unbroken" title="{place}">…ay/down/to/the/package/of/the/model.py:1234</td>'
        in section
    )


def test_close_lines_share_an_excerpt(run: Run) -> None:
    finding = run.bottlenecks()[0]
    first = finding.lines[0]
    near, far = replace(first, line=first.line + 3), replace(first, line=first.line + 40)
    texts = tuple(CodeLine(number, f"line {number}", None) for number in range(1, 80))
    code = CodeFile(first.file, texts, complete=True)
    for other, places in ((near, ["train.py:9, 12"]), (far, ["train.py:9", "train.py:49"])):
        told = replace(_told(run), findings=(replace(finding, lines=(first, other)),))
        section = findings_section(told, lambda file: code)
        assert re.findall(r'class="place">(.*?)<span', section) == places
        assert re.findall(r'row here"><span class="number">(\d+)', section) == [
            str(first.line), str(other.line)
        ]  # fmt: skip
        assert section.count(">whole run<") == len(places)


def test_the_root_module_has_a_name(tmp_path: Path) -> None:
    with RunWriter(tmp_path / "run") as writer:
        writer.write("tracks", [{"track_id": 1, "kind": "thread", "device_type": "cpu", "label": "main"}])
        row = {"track_id": 1, "category": "op", "start_ns": 0, "duration_ns": 9, "self_ns": 9, "module_id": 1}
        writer.write("events", [{"event_id": 1, "name": "aten::mm", **row}])
        writer.write("modules", [{"module_id": 1, "path": "", "class_name": "Net"}])
    page = html_report(open_run(writer.directory))
    assert "<code>(root)</code>" in page


def test_names_are_text_everywhere(tmp_path: Path) -> None:
    with RunWriter(tmp_path / EVIL.replace("/", "_")) as writer:
        writer.write(
            "tracks",
            [
                {"track_id": 1, "kind": "stream", "device_type": "cuda", "device_index": 0, "label": EVIL},
                {"track_id": 2, "kind": "thread", "device_type": "cpu", "label": EVIL},
            ],
        )
        row = {"start_ns": 0, "duration_ns": 100, "self_ns": 100, "site_id": 1, "stack_id": 1, "module_id": 1}
        writer.write(
            "events",
            [
                {"event_id": 1, "track_id": 1, "category": "kernel", "name": EVIL, **row},
                {"event_id": 2, "track_id": 2, "category": "op", "name": EVIL, **row},
            ],
        )
        writer.write(
            "sites",
            [{"site_id": 1, "file": EVIL, "line": 1, "function": EVIL, "code": EVIL, "is_user": True}],
        )
        writer.write("stacks", [{"stack_id": 1, "depth": 0, "site_id": 1}])
        writer.write("modules", [{"module_id": 1, "path": EVIL, "class_name": EVIL}])
        writer.health(EVIL, "warning", 1, EVIL, EVIL)
        writer.manifest.command = [EVIL]
    page = html_report(open_run(writer.directory))
    assert parsed(page).faults == []
    assert "alert(" not in re.sub(
        r"&lt;script&gt;alert\(&quot;x&quot;\)|\\u003cscript\\u003ealert\(", "", page
    )
    assert EVIL not in page
    outside_code = re.sub(r"`[^`]*`", "", markdown_report(open_run(writer.directory)))
    assert EVIL not in outside_code
    assert "<" not in outside_code.replace("\\<", "")


def test_markup_escapes_text_attributes_and_data() -> None:
    assert (
        tag("a", "<b>", title='"&', class_="x", hidden=None, open=True)
        == '<a title="&quot;&amp;" class="x" open>&lt;b&gt;</a>'
    )
    assert tag("i", Markup("<b>")) == "<i><b></i>"
    assert text("a\x1b[31m\u202eb") == "a�[31m�b"
    data = {"x": "</script><!--&"}
    body = json_script("d", data)
    assert "</script><" not in body
    assert json.loads(re.sub(r"<.*?>", "", body, count=1).removesuffix("</script>")) == data


@pytest.mark.slow
def test_a_real_browser_draws_it_and_asks_for_nothing(page: str, tmp_path: Path) -> None:
    script = """<script>setTimeout(function () {
      const head = document.querySelector('#ops th:nth-child(2) button'); head.click();
      const cells = Array.from(document.querySelectorAll('#lines tbody tr td:nth-child(3)'));
      document.querySelector('#lines th:nth-child(3) button').click();
      const sorted = Array.from(document.querySelectorAll('#lines tbody tr td:nth-child(3)')).map((c) => Number(c.dataset.value));
      const filter = document.querySelector('#lines input'); filter.value = 'loss'; filter.dispatchEvent(new Event('input'));
      const left = document.querySelectorAll('#lines tbody tr:not([hidden])').length;
      document.getElementById('theme').click();
      document.title = JSON.stringify({rows: cells.length, sorted: sorted, left: left, asked: performance.getEntriesByType('resource').length, theme: document.documentElement.dataset.theme});
    }, 6000);</script></body>"""
    file = tmp_path / "report.html"
    file.write_text(page.replace("</body>", script))
    opened = open_page(file, tmp_path)
    assert opened.console == []
    assert opened.requests == []
    assert 'data-drawn="yes"' in opened.dom
    assert opened.dom.count('class="main-svg"') >= 3
    title = re.search(r"<title>(.*?)</title>", opened.dom)
    assert title is not None
    seen = json.loads(title[1].replace("&quot;", '"'))
    assert seen["rows"] == 3
    assert seen["sorted"] == sorted(seen["sorted"], reverse=True)
    assert seen["left"] == 1
    assert seen["asked"] == 0
    assert seen["theme"] == "dark"


def test_many_ranks_have_a_heat_map(tmp_path: Path) -> None:
    page = html_report(open_run(Job(ranks=3, steps=6).write(tmp_path / "run")))
    found = re.search(r'<script type="application/json" id="figures">(.*?)</script>', page)
    assert found is not None
    figure = json.loads(found[1])["ranks"]["data"][0]
    assert figure["y"] == ["rank 0", "rank 1", "rank 2"]
    assert [len(row) for row in figure["z"]] == [6, 6, 6]


def test_an_empty_run_still_makes_a_page(tmp_path: Path) -> None:
    with RunWriter(tmp_path / "run"):
        pass
    page = html_report(open_run(tmp_path / "run"))
    assert parsed(page).faults == []
    assert "No rule found anything" in page


def test_markdown_names_the_line(run: Run) -> None:
    out = markdown_report(run)
    assert "### What to change" in out
    assert "`train.py:9` `loss.item()`" in out


def _told(run: Run) -> Findings:
    """Two findings that share a doubt of the run."""
    first = run.bottlenecks()[0]
    doubt = "Other programs used the processor."
    advice = "Use `a_b[i] | c` and torch.optim.AdamW(..., fused=True), not 2 * n."
    found = replace(first, advice=advice, caveats=("Own.", doubt), saving=Saving(1000, 2000, 3000, "bound"))
    missing = (NotChecked("copies", NEEDS["device"]), NotChecked("dma", NEEDS["neuron"]))
    return Findings(run.directory, 10_000, 2, 1, (found, replace(found, id="x/2")), missing, doubts=(doubt,))


def test_markdown_shows_code_doubts_and_what_is_missing(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    told = _told(run)
    monkeypatch.setattr(Run, "bottlenecks", lambda self: told)
    out = markdown_report(run)
    share = f"{100 * told[0].saving_share:.1f} %"
    assert f"saves at most 3 µs of each step (expected 2 µs, {share})." in out
    assert (
        out.count("   - Do: Use `a_b[i] | c` and `torch.optim.AdamW(..., fused=True)`, not 2 \\* n.\n") == 2
    )
    assert out.count("Other programs used the processor.") == 1
    assert out.count("   - But: Own.\n") == 2
    assert "- 2 rules need a device: none in this run\n" in out


def test_the_page_says_shared_doubts_once_and_groups_what_is_missing(run: Run) -> None:
    section = findings_section(_told(run), lambda file: None)
    assert section.count("Other programs used the processor.") == 1
    assert section.count("<b>But: </b>Own.</p>") == 2
    assert "Saves at most 3 µs of each step (expected 2 µs" in section
    assert " to 3 µs" not in section
    assert "<li>2 rules need a device: none in this run<div" in section
    assert "<code>a_b[i] | c</code>" in section


def test_the_verb_writes_files_and_says_where(
    run: Run, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["report", run.directory, "-o", str(tmp_path / "r.html")]) == 0
    assert (tmp_path / "r.html").read_text().startswith("<!doctype html>")
    assert "r.html" in capsys.readouterr().err
    assert main(["report", run.directory, "--format", "md"]) == 0
    assert capsys.readouterr().out.startswith("## ")
    assert main(["report", run.directory, "-o", "/nowhere/r.html"]) == 2
    assert main(["report", run.directory, "--format", "pdf"]) == 2


def test_notebooks_show_runs_findings_and_tables(run: Run) -> None:
    from explorer.report.notebook import findings_html, result_html, run_html

    assert "shadowrootmode" in run_html(run)
    assert "train.py:9" in findings_html(run.bottlenecks())
    assert "<table" in result_html(run.ops())


def test_the_roofline_shows_ops_under_their_roof() -> None:
    row = {"device": "cuda:0", "dtype": "float32", "name": "aten::mm"}
    rows = [
        {**row, "intensity": 100.0, "achieved_flops": 5e12, "attainable_flops": 1e13, "bound": "compute"},
        {**row, "intensity": 2.0, "achieved_flops": 1e12, "attainable_flops": 4e12, "bound": "memory"},
        {**row, "intensity": None, "achieved_flops": 1e12},
    ]
    figure = roofline_figure(rows)
    assert figure is not None
    ops, roof = figure["data"]
    assert (ops["x"], ops["y"]) == ([100.0, 2.0], [5000.0, 1000.0])
    # 2e12 bytes/s and 1e13 FLOP/s meet at 5 FLOP per byte.
    assert (roof["x"], roof["y"]) == ([1.0, 5.0, 400.0], [2000.0, 10000.0, 10000.0])
    assert roofline_figure(rows[2:]) is None


def test_a_comparison_as_a_page(tmp_path: Path) -> None:
    before, after = (
        write(tmp_path / "a", 1000, "loop()\nx = mm(a, b)\n"),
        write(tmp_path / EVIL.replace("/", "_"), 1300, "loop()\nx = mm(a, b)\n"),
    )
    target = tmp_path / "d.html"
    assert main(["diff", before, after, "--html", str(target)]) == 0
    page = target.read_text()
    assert parsed(page).faults == []
    assert parsed(page).stack == []
    assert EVIL.replace("/", "_") not in page
    assert "+25.0%" in page
    assert "slower; 95 % interval" in page
    assert page.index("By kind of work") < page.index("By source line")
    assert main(["diff", before, after, "--html", "/nowhere/d.html"]) == 2
