"""Style sheets that are parsed once for each theme, and styled with one repaint of a widget, not one for each colour."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, TypeAlias

from textual.cache import LRUCache
from textual.css._style_properties import ColorProperty, ScrollbarColorProperty
from textual.css.styles import StylesBase
from textual.css.stylesheet import Stylesheet
from textual.widget import Widget

if TYPE_CHECKING:
    from textual.css.model import RuleSet
    from textual.css.styles import RulesMap
    from textual.dom import DOMNode

MOST_SHEETS = 256
"""Every class of widget has a sheet of its own; the library keeps 64, and parses all anew once there are more."""
_BARS = frozenset(name for name, value in vars(StylesBase).items() if type(value) is ScrollbarColorProperty)
_COLORS = _BARS | {name for name, value in vars(StylesBase).items() if type(value) is ColorProperty}

Parsed: TypeAlias = "LRUCache[tuple[object, ...], list[RuleSet]]"


class ThemedStyles(Stylesheet):
    """A style sheet that goes from theme to theme without parsing anything twice.

    The library parses all sheets anew at each change of theme, and once more when the next widget comes: a fortieth of a
    second each time.
    """

    def __init__(self, *, variables: dict[str, str] | None = None) -> None:
        super().__init__(variables=variables)
        self._known: dict[frozenset[tuple[str, str]], Parsed] = {}
        self._parse_cache = self._parsed_with(self._variables)

    def _parsed_with(self, variables: dict[str, str]) -> Parsed:
        return self._known.setdefault(frozenset(variables.items()), LRUCache(MOST_SHEETS))

    def set_variables(self, variables: dict[str, str]) -> None:
        """Use the variables of another theme."""
        self._parse_cache = LRUCache(1)  # emptied by the library, which must not empty the one in use
        super().set_variables(variables)
        self._parse_cache = self._parsed_with(variables)

    def reparse(self) -> None:
        """Apply the variables. Raises what parsing a faulty sheet raises, and leaves the rules as they were then."""
        self.parse()

    def parse_ahead(self, variables: dict[str, str]) -> Iterator[None]:
        """Parse every sheet for variables that may be wanted later, one at each step of the iteration."""
        ahead = Stylesheet(variables=variables)
        ahead._parse_cache = self._parsed_with(variables)
        for read_from, (css, is_default, tie_breaker, scope) in list(self.source.items()):
            ahead._parse_rules(css, read_from, is_default, tie_breaker, scope)
            yield

    @classmethod
    def replace_rules(cls, node: DOMNode, rules: RulesMap, animate: bool = False) -> None:
        """Give a node its rules. Colours that change do so together: each for itself would repaint the node with all that
        is in it."""
        if not animate:
            base = node.styles.base
            colors = {name: value for name, value in rules.items() if name in _COLORS and value is not None}
            changed = {name: color for name, color in colors.items() if base.get_rule(name, None) != color}
            if changed:
                base.merge_rules(changed)  # type: ignore[arg-type]
                base.refresh(children=True)
                if isinstance(node, Widget) and not _BARS.isdisjoint(changed):
                    _refresh_bars(node)
        super().replace_rules(node, rules, animate=animate)


def _refresh_bars(widget: Widget) -> None:
    if widget.show_horizontal_scrollbar:
        widget.horizontal_scrollbar.refresh()
    if widget.show_vertical_scrollbar:
        widget.vertical_scrollbar.refresh()
