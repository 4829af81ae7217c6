"""Our category and the side (host or device) of every event, decided once per distinct category, name and process."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from explorer.collectors.kineto.categories import classify
from explorer.collectors.kineto.distinct import distinct
from explorer.collectors.kineto.light import Ints, LightRows
from explorer.collectors.kineto.tracks import Processes


def classify_events(
    light: LightRows, row: Ints, processes: Processes
) -> tuple[npt.NDArray[np.int8], npt.NDArray[np.bool_], list[str]]:
    """Positions in the list of our categories, and which events are on a device."""
    uncategorised = np.array([not value for value in light.categories], bool)
    names = np.array([hash(n) for n in processes.by_track(light)], np.int64) if processes.names else None
    width = len(light.names)
    category = light.category[row].astype(np.int64)
    key = category * width + light.name[row]
    if names is not None and uncategorised.any():
        _, process = np.unique(names, return_inverse=True)
        span = int(process.max()) + 2
        key = key * span + np.where(uncategorised[category], process[light.track[row]] + 1, 0)
        of_process = dict(zip((process + 1).tolist(), processes.by_track(light)))
    else:
        span, of_process = 1, {}
    del category
    found_keys, inverse = distinct(key)
    ours: list[str] = []
    position: dict[str, int] = {}
    found = np.zeros(len(found_keys), np.int8)
    device = np.zeros(len(found_keys), bool)
    for index, value in enumerate(found_keys.tolist()):
        rest, process_number = divmod(value, span)
        code, name = divmod(rest, width)
        word, on_device = classify(
            light.categories[code], light.names[name] or "", of_process.get(process_number)
        )
        if word not in position:
            position[word] = len(ours)
            ours.append(word)
        found[index], device[index] = position[word], on_device
    return found[inverse], device[inverse], ours or ["other"]
