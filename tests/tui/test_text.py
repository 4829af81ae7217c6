from __future__ import annotations

import unicodedata

import pytest
from hypothesis import given
from hypothesis import strategies as st
from rich.cells import cell_len

from explorer.tui.text import brief, fit, fit_path, plain_text, safe, safe_code

HOSTILE = [
    "[bold red]kernel[/]",
    "\x1b[2J\x1b]52;c;ZXZpbA==\x07boom",
    "a\u202egnp.exe",
    "zero\u200bwidth\ufeff",
    "漢字カーネル",
    "שלום",
    "x" * 4000,
    "tab\tand\nline",
    "\x9b31mred",
    "\ud800broken",
]


@given(st.text(st.characters(exclude_categories=())))
def test_safe_text_holds_nothing_a_terminal_obeys(text: str) -> None:
    shown = safe(text)
    assert "\n" not in shown
    for character in shown:
        assert unicodedata.category(character) not in ("Cc", "Cs"), repr(character)
        assert (
            character not in "\u200b\u200e\u200f\u202a\u202b\u202c\u202d\u202e\u2066\u2067\u2068\u2069\ufeff"
        )


@pytest.mark.parametrize("name", HOSTILE)
@pytest.mark.parametrize("width", [1, 2, 7, 40])
def test_fitted_text_has_exactly_the_width_asked_for(name: str, width: int) -> None:
    assert cell_len(fit(name, width)) == width
    assert cell_len(fit(name, width, "right")) == width


@given(st.text(st.characters(exclude_categories=())), st.integers(0, 60))
def test_fit_is_exact_for_any_text(text: str, width: int) -> None:
    assert cell_len(fit(text, width)) == width


def test_escape_sequences_become_visible_marks() -> None:
    assert safe("\x1b[31mred") == "␛[31mred"
    assert safe("a\u202eb") == "a·b"


def test_markup_is_text() -> None:
    text = plain_text("[bold]x[/bold] [link=http://a]y[/]")
    assert text.plain == "[bold]x[/bold] [link=http://a]y[/]"
    assert not text.spans


@pytest.mark.parametrize(
    ("name", "shown"),
    [
        (
            "void at::native::vectorized_elementwise_kernel<4, at::native::Add<float>, std::array<char*, 3ul> >(int, float)",
            "at::native::vectorized_elementwise_kernel<…>",
        ),
        ("ampere_sgemm_128x64_tn", "ampere_sgemm_128x64_tn"),
        ("<frozen runpy>(88): _run_code", "<frozen runpy>(88): _run_code"),
        ("train.py(3): <lambda>", "train.py(3): <lambda>"),
        ("aten::add", "aten::add"),
        ("Memcpy HtoD (Pageable -> Device)", "Memcpy HtoD (Pageable -> Device)"),
        ("nn.Module: Linear_0", "nn.Module: Linear_0"),
    ],
)
def test_brief_shortens_kernel_names_only(name: str, shown: str) -> None:
    assert brief(name) == shown


def test_a_path_keeps_its_end() -> None:
    assert fit_path("/a/very/long/path/train.py:57", 14) == "…h/train.py:57"
    assert fit_path("train.py:5", 20) == "train.py:5"


def test_code_keeps_its_indentation() -> None:
    assert safe_code("\tif x:\n") == "    if x:"
