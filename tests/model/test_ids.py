"""Dimension ids: positive, 53 bits, a function of the content alone."""

from hypothesis import given
from hypothesis import strategies as st

from explorer.model.ids import content_id, module_id, site_id, stack_id


@given(st.text(), st.integers(0, 2**31 - 1), st.text())
def test_ids_survive_json_numbers(file: str, line: int, function: str) -> None:
    number = site_id(file, line, function)
    assert 1 <= number < 2**53
    assert int(float(number)) == number
    assert number == site_id(file, line, function)


def test_ids_depend_on_every_part() -> None:
    base = site_id("a.py", 3, "f")
    assert (
        len(
            {
                base,
                site_id("b.py", 3, "f"),
                site_id("a.py", 4, "f"),
                site_id("a.py", 3, "g"),
                site_id("a.py", 3, "f", 4),
            }
        )
        == 5
    )
    assert stack_id([1, 2]) != stack_id([2, 1])
    assert module_id("a", "B") != module_id("aB", "")
    assert content_id(None) != content_id("")


def test_known_values_never_change() -> None:
    """Ids are stored in runs; a changed hash would part equal lines of old and new runs."""
    assert site_id("train.py", 57, "train_step") == 8154925870967890
    assert stack_id([1, 2, 3]) == 51057151313897
