"""Import of speedscope files: evented and sampled profiles of several threads over one table of frames.

After speedscope's published file-format specification: `shared.frames` (name, file, line, col); profiles of type
`evented` (events O and C with a frame and a time) or `sampled` (stacks outermost first, with weights).
"""

from __future__ import annotations

from fractions import Fraction
from typing import TYPE_CHECKING, Any

from explorer.collectors.call_stacks import Frame
from explorer.collectors.import_session import ImportSession
from explorer.collectors.json_document import read_document
from explorer.collectors.options import DEFAULTS, ImportOptions
from explorer.collectors.row_buffer import attributes_json
from explorer.collectors.source import Source
from explorer.collectors.source_content import read_content
from explorer.model.errors import InputError

if TYPE_CHECKING:
    from explorer.store.writer import RunWriter

NAME = "speedscope"
_UNITS = {"nanoseconds": 1, "microseconds": 10**3, "milliseconds": 10**6, "seconds": 10**9}
_KEYS = (b'"profiles"', b'"frames"')


def recognises(source: Source) -> bool:
    """A JSON object that names speedscope's schema, or begins with its keys."""
    head = source.head
    if head.removeprefix(b"\xef\xbb\xbf").lstrip()[:1] != b"{" or b'"traceEvents"' in head:
        return False
    return b"speedscope.app/file-format-schema" in head or (
        b'"shared"' in head and any(key in head for key in _KEYS)
    )


def import_source(source: Source, writer: RunWriter, options: ImportOptions = DEFAULTS) -> None:
    """Read every profile of a file as a thread. Raises InputError when it holds none."""
    content = read_content(source)
    document = read_document(content.data, source.path)
    root = document.value if isinstance(document.value, dict) else {}
    profiles, shared = root.get("profiles"), root.get("shared")
    if not isinstance(profiles, list) or not profiles:
        raise InputError(f"{source.path} holds no speedscope profiles.")
    frames = shared.get("frames") if isinstance(shared, dict) else None
    session = ImportSession(writer, source, NAME, options)
    reading = _Profiles(session, frames if isinstance(frames, list) else [])
    for number, profile in enumerate(profiles):
        if isinstance(profile, dict):
            reading.read(number, profile)
        else:
            session.quarantine({"profile": profile}, "no_profile")
    session.merged_rows(len(reading.frames))
    rest = {key: value for key, value in root.items() if key not in ("profiles", "shared", "$schema")}
    if rest:
        session.source_row("metadata", str(root.get("name", "")), rest)
    if document.damage or content.damage:
        session.lost("the file", document.damage or content.damage or "", offset=document.offset)
    writer.health(
        "no_absolute_time",
        "info",
        1,
        "speedscope files count time from the start of the recording, not from an epoch.",
    )
    session.close()


class _Profiles:
    def __init__(self, session: ImportSession, frames: list[Any]) -> None:
        self.session = session
        self.frames = [frame if isinstance(frame, dict) else {} for frame in frames]

    def read(self, number: int, profile: dict[str, Any]) -> None:
        unit = profile.get("unit")
        scale = _UNITS.get(str(unit), 1)
        if unit not in _UNITS:
            self.session.writer.health(
                "no_time_unit",
                "warning",
                1,
                f"Profile {number} counts in {unit}, which is no time: one unit is shown as one nanosecond.",
            )
        name = str(profile.get("name") or f"profile {number}")
        track = self.session.tracks.thread(None, number, name)
        if profile.get("type") == "sampled":
            self._sampled(track, profile, scale)
        else:
            self._evented(track, profile, scale)

    def _line(self, frame: Any) -> tuple[str, dict[str, Any]]:
        """Name and source line of a frame. Files name the frame's function, and some the line being executed."""
        if not isinstance(frame, int) or not 0 <= frame < len(self.frames):
            return f"frame {frame}", {}
        entry = self.frames[frame]
        name, file, line = str(entry.get("name", "")), entry.get("file"), entry.get("line")
        if not isinstance(file, str) or not file:
            return name, {}
        site = self.session.stacks.site(Frame(file, line if isinstance(line, int) else 0, name))
        if not self.session.stacks.is_user(site):
            return name, {}
        return name, {"site_id": site, "attribution": "stack", "precision": "coarse"}

    def _add(self, track: int, frame: Any, start: int, end: int, more: dict[str, Any] | None = None) -> None:
        name, line = self._line(frame)
        entry = self.frames[frame] if isinstance(frame, int) and 0 <= frame < len(self.frames) else {}
        fields = {key: entry.get(key) for key in ("file", "line", "col")} | (more or {})
        self.session.event(
            track_id=track,
            category="python" if str(entry.get("file", "")).endswith(".py") else "other",
            name=name,
            start_ns=start,
            duration_ns=end - start,
            attributes=attributes_json(fields),
            **line,
        )

    def _evented(self, track: int, profile: dict[str, Any], scale: int) -> None:
        open_frames: list[tuple[Any, int]] = []
        last = _time(profile.get("startValue"), scale) or 0
        rows = profile.get("events")
        for row in rows if isinstance(rows, list) else []:
            time = _time(row.get("at"), scale) if isinstance(row, dict) else None
            kind = row.get("type") if isinstance(row, dict) else None
            if time is None or kind not in ("O", "C"):
                self.session.quarantine({"event": row}, "no_time" if kind in ("O", "C") else "no_event")
                continue
            last = max(last, time)
            if kind == "O":
                open_frames.append((row.get("frame"), time))
                continue
            place = next(
                (p for p in range(len(open_frames) - 1, -1, -1) if open_frames[p][0] == row.get("frame")),
                None,
            )
            if place is None:
                self.session.quarantine(row, "end_without_begin")
                continue
            frame, start = open_frames.pop(place)
            self._add(track, frame, start, time)
            # The closing row lives on in the event.
            self.session.merged_rows(1)
        end = _time(profile.get("endValue"), scale)
        for frame, start in reversed(open_frames):
            self._add(track, frame, start, max(last, end or 0, start), {"unfinished": True})

    def _sampled(self, track: int, profile: dict[str, Any], scale: int) -> None:
        """Frames that stay on the stack from one sample to the next become one event."""
        samples, weights = profile.get("samples"), profile.get("weights")
        samples = samples if isinstance(samples, list) else []
        weights = weights if isinstance(weights, list) else []
        now = Fraction(_time(profile.get("startValue"), scale) or 0)
        stack: list[tuple[Any, int]] = []
        for place, sample in enumerate(samples):
            weight = _exact(weights[place], scale) if place < len(weights) else None
            if not isinstance(sample, list) or weight is None or weight < 0:
                self.session.quarantine({"sample": sample, "weight": weight and str(weight)}, "no_weight")
                continue
            common = 0
            while common < min(len(stack), len(sample)) and stack[common][0] == sample[common]:
                common += 1
            self._close(track, stack, common, int(now))
            stack.extend((frame, int(now)) for frame in sample[common:])
            now += weight
            self.session.merged_rows(1)
        self._close(track, stack, 0, int(now))

    def _close(self, track: int, stack: list[tuple[Any, int]], keep: int, now: int) -> None:
        while len(stack) > keep:
            frame, start = stack.pop()
            self._add(track, frame, start, now)
            # Samples are what the file holds; the event is made of them.
            self.session.derived_row()


def _exact(value: Any, scale: int) -> Fraction | None:
    if isinstance(value, bool) or not isinstance(value, int | float):
        return None
    try:
        # The shortest decimal text of a float is what the file says.
        return Fraction(repr(value)) * scale
    except (ValueError, OverflowError):
        return None


def _time(value: Any, scale: int) -> int | None:
    exact = _exact(value, scale)
    return None if exact is None or abs(exact) >= 2**62 else round(exact)
