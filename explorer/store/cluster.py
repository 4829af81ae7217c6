"""Work on a Dask cluster (the extra `distributed`): one task per item, each tried again where its worker died."""

from __future__ import annotations

import socket
from collections.abc import Callable, Sequence
from typing import Any

from explorer.model.errors import InputError, UsageError

RETRIES = 3
CONNECT_S = 20


def each(
    scheduler: str, function: Callable[..., Any], items: Sequence[tuple[Any, ...]]
) -> list[tuple[Any, str | None]]:
    """Call `function(*item)` for every item on the scheduler's workers.

    `function` must bear being run twice: a task whose worker died runs again elsewhere, and the first try may have got
    far.

    Returns:
        (result, None) or (None, reason) per item, in order.

    Raises UsageError without the extra `distributed`, InputError when no scheduler answers or it has no workers.
    """
    try:
        from distributed import Client
    except ImportError as error:
        raise UsageError(
            "--scheduler needs the package distributed.",
            "Install it: pip install 'neuron-explorer[distributed]'",
        ) from error
    try:
        _knock(scheduler)
        client = Client(scheduler, timeout=CONNECT_S, set_as_default=False)
    except (OSError, TimeoutError, ValueError) as error:
        raise InputError(
            f"No Dask scheduler answers at {scheduler}.", "Start one: dask scheduler; then its workers."
        ) from error
    with client:
        if not client.scheduler_info()["workers"]:
            raise InputError(f"The Dask scheduler at {scheduler} has no workers.", "Start some: dask worker")
        # Not pure: two calls with equal arguments are two pieces of work (the run may have changed in between).
        futures = [client.submit(function, *item, retries=RETRIES, pure=False) for item in items]
        found: list[tuple[Any, str | None]] = []
        for future in futures:
            failure = future.exception()
            found.append(
                (future.result(), None) if failure is None else (None, f"{type(failure).__name__}: {failure}")
            )
        return found


def _knock(address: str) -> None:
    """Connect and leave again. Raises OSError where nobody listens: a client that waits for a scheduler would print what
    its threads meet."""
    protocol, _, place = address.rpartition("://")
    if protocol not in ("", "tcp", "tls"):
        return
    host, _, port = place.rpartition(":") if place.rsplit(":", 1)[-1].isdecimal() else (place, "", "8786")
    with socket.create_connection((host.strip("[]"), int(port)), timeout=CONNECT_S):
        pass
