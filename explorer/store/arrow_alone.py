"""Arrow without pandas: the first `pyarrow.array` of a process loads pandas if it is installed, which takes a quarter second."""

from __future__ import annotations

import sys
import types
import warnings


def keep_pandas_out() -> None:
    """Make pyarrow forgo pandas until something asks for it (`to_pandas` still works). For processes of our own only:
    afterwards `pyarrow.array(series)` keeps NaN where it would have made it null."""
    if "pandas" in sys.modules:
        return
    stub = types.ModuleType("pandas")
    stub.__version__ = "0"  # type: ignore[attr-defined]
    sys.modules["pandas"] = stub
    try:
        import pyarrow as pa

        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            pa.array([0])
    finally:
        del sys.modules["pandas"]
