"""Loaded by every Python process below `neuron-explorer record`, through PYTHONPATH: arms the recorder, then steps aside.

The program must not notice: this folder leaves sys.path again, the sitecustomize that would have been loaded without us
is loaded, and no failure in here reaches the program.
"""

import os
import sys


def _step_aside() -> None:
    here = os.path.dirname(os.path.abspath(__file__))
    sys.path[:] = [path for path in sys.path if os.path.abspath(path or ".") != here]
    ours = sys.modules.pop("sitecustomize", None)
    try:
        import sitecustomize  # noqa: F401
    except ImportError:
        if ours is not None:
            # The import system wants to find what it has just imported.
            sys.modules["sitecustomize"] = ours


def _arm() -> None:
    home = os.environ.get("NEURON_EXPLORER_HOME")
    if not os.environ.get("NEURON_EXPLORER_RECORD") or not home:
        return
    try:
        import explorer.collectors.capture.zero_code as zero_code
    except ImportError:
        # The program runs in another environment than the tool: use the tool's own files, behind everything else.
        sys.path.append(home)
        import explorer.collectors.capture.zero_code as zero_code
    zero_code.arm()


_step_aside()
try:
    _arm()
except Exception as error:
    print(f"neuron-explorer: this process is not recorded: {type(error).__name__}: {error}", file=sys.stderr)
