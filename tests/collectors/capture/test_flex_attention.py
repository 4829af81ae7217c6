"""Compiled FlexAttention: its kernel has the line of the call and those of the functions it was given, cached or not."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from explorer.store.reader import RunReader

torch = pytest.importorskip("torch")
pytest.importorskip("torch.nn.attention.flex_attention")
pytestmark = [
    pytest.mark.capture,
    pytest.mark.slow,
    pytest.mark.skipif(shutil.which("g++") is None, reason="Inductor needs a C++ compiler"),
    pytest.mark.skipif(
        torch.backends.cpu.get_cpu_capability() not in ("AVX2", "AVX512"),
        reason="compiled FlexAttention needs AVX2",
    ),
]

PROGRAM = """\
import sys
import torch
from torch.nn.attention.flex_attention import create_block_mask, flex_attention
from explorer import neuron_profile

def causal(batch, head, query, key):
    return query >= key  # mask

def soft_cap(score, batch, head, query, key):
    return torch.tanh(score / 20) * 20  # score

def attend(x, scale, shift):
    key = x * scale  # key
    value = torch.sigmoid(x) + shift  # value
    return flex_attention(x, key, value, score_mod=soft_cap, block_mask=mask)  # attention

mask = create_block_mask(causal, 1, 2, 64, 64, device="cpu")
scale, shift = torch.randn(16), torch.randn(16)
with torch.no_grad(), neuron_profile(sys.argv[1]) as prof:
    compiled = torch.compile(attend)
    for _ in range(3):
        compiled(torch.randn(1, 2, 64, 16), scale, shift)
        prof.step()
"""
LINES = PROGRAM.splitlines()


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("flex")


@pytest.mark.parametrize("time", ["compiled", "from the cache"])
def test_the_kernels_of_attention_have_all_their_lines(folder: Path, time: str) -> None:
    (folder / "program.py").write_text(PROGRAM)
    directory = folder / time
    done = subprocess.run(
        [sys.executable, str(folder / "program.py"), str(directory)],
        capture_output=True,
        text=True,
        timeout=280,
        check=False,
        env={
            **os.environ,
            "OMP_NUM_THREADS": "1",
            "TORCHINDUCTOR_CACHE_DIR": str(folder / "cache"),
            "PYTHONPATH": str(Path(__file__).resolve().parents[3]),
        },
    )
    assert done.returncode == 0, done.stderr
    run = RunReader(directory)
    sites = {
        row["site_id"]: LINES[row["line"] - 1].rpartition("# ")[2] for row in run.read("sites").to_pylist()
    }
    shares: dict[int, dict[str, float]] = {}
    for row in run.read("event_sites").to_pylist():
        shares.setdefault(row["event_id"], {})[sites[row["site_id"]]] = row["share"]
    kernels = [e for e in run.read("events").to_pylist() if e["attribution"] == "compiled"]
    attention = [e for e in kernels if e["name"].endswith("_kernel")]
    before = [e for e in kernels if "cpp_fused" in e["name"]]
    assert {e["step"] for e in attention} == {e["step"] for e in before} == {0, 1, 2}
    for event in attention:
        # The call counts as much as the nodes of its functions: a division, a tanh, a product; a comparison.
        assert shares[event["event_id"]] == {"attention": 0.5, "score": 0.375, "mask": 0.125}
        assert sites[event["site_id"]] == "attention"
    for event in before:
        assert shares[event["event_id"]] == {"key": 0.5, "value": 0.5}
    facts = next(
        json.loads(e["attributes"]) for e in run.read("events").to_pylist() if e["name"] == "compile attend"
    )
    assert facts["inductor_fx_local_cache_hit_count"] == (time == "from the cache")
