"""From a device's clock to the host's: offsets at sync points, interpolated between them."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

Int64s = npt.NDArray[np.int64]
EPOCH_NS = 946_684_800_000_000_000
"""Times after the year 2000 are taken for Unix time."""


@dataclass(frozen=True)
class DeviceClock:
    """host = device + offset(device).

    Attributes:
        device_ns: device times of the sync points, rising; empty: the device's times are kept.
        offset_ns: host minus device at each.
        method: 'sync_point', 'pairing' or 'none'.
        residual_ns: largest disagreement between points and the median offset; 0 for one point.
        alignments: how many alignments of a pairing agreed; more than one: the first steadiest was taken.
    """

    device_ns: tuple[int, ...] = ()
    offset_ns: tuple[int, ...] = ()
    method: str = "none"
    residual_ns: int = 0
    alignments: int = 1

    def to_host(self, times: Int64s) -> Int64s:
        """Host times. Beyond the first and last point the nearest offset holds."""
        if not self.device_ns:
            return times
        base = self.offset_ns[0]
        # Offsets are interpolated as small numbers around the first, so float64 keeps every nanosecond.
        small = np.array([offset - base for offset in self.offset_ns], np.float64)
        points = np.array(self.device_ns, np.int64)
        shift = np.rint(np.interp((times - points[0]).astype(np.float64), points - points[0], small))
        moved: Int64s = times + base + shift.astype(np.int64)
        return moved


def from_sync_points(pairs: list[tuple[int, int]]) -> DeviceClock:
    """A clock from (host ns, device ns) pairs. Later pairs of one device time win; [] gives the clock 'none'."""
    points = dict(sorted((device, host - device) for host, device in pairs))
    if not points:
        return DeviceClock()
    offsets = list(points.values())
    middle = sorted(offsets)[len(offsets) // 2]
    residual = max(abs(offset - middle) for offset in offsets)
    return DeviceClock(tuple(points), tuple(offsets), "sync_point", residual)


def from_pairing(executions: list[tuple[int, int]], running: list[tuple[int, int]]) -> DeviceClock:
    """A clock from executions on the device's clock and on the host's, each (start, duration), paired by duration.

    The two lists show the same executions in the same order, but either may lack some at its ends. Every alignment of
    the shorter list inside the longer one is tried; a pair agrees when the durations differ by at most 10 us or 0.2 %,
    whichever is more. The alignment with all pairs agreeing and the steadiest offset wins; without one the clock is
    'none'. The tolerance is the one public notes on such profiles use.
    """
    if not executions or not running:
        return DeviceClock()
    executions, running = sorted(executions), sorted(running)
    short = min(len(executions), len(running))
    best: tuple[int, list[tuple[int, int]]] | None = None
    alignments = 0
    for place in range(max(len(executions), len(running)) - short + 1):
        left = executions[place : place + short] if len(executions) > short else executions
        right = running[place : place + short] if len(running) > short else running
        if any(abs(a[1] - b[1]) > max(10_000, 0.002 * max(a[1], b[1])) for a, b in zip(left, right)):
            continue
        alignments += 1
        offsets = [b[0] - a[0] for a, b in zip(left, right)]
        middle = sorted(offsets)[len(offsets) // 2]
        spread = max(abs(offset - middle) for offset in offsets)
        if best is None or spread < best[0]:
            best = spread, [(a[0], middle) for a in left[:1]]
    if best is None:
        return DeviceClock()
    spread, points = best
    return DeviceClock(
        tuple(point[0] for point in points),
        tuple(point[1] for point in points),
        "pairing",
        spread,
        alignments,
    )
