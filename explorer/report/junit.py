"""Outcomes of a check as JUnit XML, as CI systems read it."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING
from xml.etree import ElementTree

if TYPE_CHECKING:
    from explorer.analysis.budget import Outcome

_NOT_XML = dict.fromkeys([*range(9), 11, 12, *range(14, 32)])


def junit_xml(outcomes: Sequence[Outcome], run: str) -> str:
    """One test case per rule; a rule that could not be checked is skipped."""
    suite = ElementTree.Element(
        "testsuite",
        name="neuron-explorer check",
        tests=str(len(outcomes)),
        failures=str(sum(outcome.passed is False for outcome in outcomes)),
        skipped=str(sum(outcome.passed is None for outcome in outcomes)),
    )
    for outcome in outcomes:
        case = ElementTree.SubElement(suite, "testcase", classname=_clean(run), name=_clean(outcome.rule))
        if outcome.passed is False:
            ElementTree.SubElement(case, "failure", message=_clean(outcome.message))
        elif outcome.passed is None:
            ElementTree.SubElement(case, "skipped", message=_clean(outcome.message))
    return ElementTree.tostring(suite, encoding="unicode", xml_declaration=True) + "\n"


def _clean(text: str) -> str:
    return text.translate(_NOT_XML)
