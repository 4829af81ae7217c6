"""Code in sentences: found, and shown to the letter in Markdown and HTML."""

import pytest

from explorer.report.code_in_text import pieces
from explorer.report.html.markup import with_code
from explorer.report.markdown import code_span


@pytest.mark.parametrize(
    ("text", "code"),
    [
        ("use `a | b` or c", ["a | b"]),
        ("DataLoader(..., num_workers=4, x=f(1)), or once", ["DataLoader(..., num_workers=4, x=f(1))"]),
        ("(torch.distributed.checkpoint.async_save, or not)", ["torch.distributed.checkpoint.async_save"]),
        ("drop .contiguous() and @torch.compile", [".contiguous()", "@torch.compile"]),
        ("set OMP_NUM_THREADS or set_to_none=True", ["OMP_NUM_THREADS", "set_to_none=True"]),
        ("Slurm's --cpus-per-task", ["--cpus-per-task"]),
        ("At a_b/train.py:12.", ["a_b/train.py:12"]),
        ("At train.py. Then", ["train.py"]),
        ("e.g. 3.5 times, i.e. 1e-38 and (p-1)/(m+p-1), on a CPU (or GPU).", []),
        ("an open ` stays", []),
    ],
)
def test_what_is_code(text: str, code: list[str]) -> None:
    found = list(pieces(text))
    assert [piece for piece, is_code in found if is_code] == code
    assert "".join(piece for piece, _ in found) == text.replace("`" if "`a" in text else "\0", "")


def test_html_marks_code_and_escapes_it() -> None:
    assert with_code("call `a<b` or x.item() & go") == (
        "call <code>a&lt;b</code> or <code>x.item()</code> &amp; go"
    )


def test_markdown_shows_code_to_the_letter() -> None:
    assert code_span("a_b * c|d") == "`a_b * c|d`"
    assert code_span("a|b", in_table=True) == "`a\\|b`"
    assert code_span("x = `y`") == "`` x = `y` ``"
    assert code_span("a``b`c") == "```a``b`c```"
    assert code_span("") == ""
