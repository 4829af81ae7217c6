"""A Hugging Face model: the project's line is responsible, the model's own lines stand in the stack, globs change whose it is."""

from __future__ import annotations

from pathlib import Path

import pytest

from explorer import neuron_profile
from explorer.store.reader import RunReader

torch = pytest.importorskip("torch")
transformers = pytest.importorskip("transformers")
pytestmark = [pytest.mark.capture, pytest.mark.slow]

HERE = "tests/collectors/capture/test_library_frames.py"


def record(directory: Path, **options: object) -> RunReader:
    config = transformers.GPT2Config(
        n_layer=1, n_head=2, n_embd=8, vocab_size=16, n_positions=8, use_cache=False
    )
    model = transformers.GPT2LMHeadModel(config)
    words = torch.zeros(1, 4, dtype=torch.long)
    with neuron_profile(directory, telemetry=False, **options) as prof:  # type: ignore[arg-type]
        model(input_ids=words, labels=words).loss.backward()  # the project's line
        prof.step()
    assert prof.directory is not None
    return RunReader(prof.directory)


LINE = next(
    at for at, text in enumerate(Path(__file__).read_text().splitlines(), 1) if "# the project's line" in text
)


def layer_norms(run: RunReader) -> list[tuple[dict, list[dict]]]:
    """(responsible site, chain innermost first) of every layer norm of the model."""
    sites = {row["site_id"]: row for row in run.read("sites").to_pylist()}
    chains: dict[int, list[dict]] = {}
    for row in sorted(run.read("stacks").to_pylist(), key=lambda row: row["depth"]):
        chains.setdefault(row["stack_id"], []).append(sites[row["site_id"]])
    return [
        (sites[event["site_id"]], chains[event["stack_id"]])
        for event in run.read("events").to_pylist()
        if event["name"] == "aten::layer_norm"
    ]


def test_both_the_innermost_project_line_and_the_innermost_library_line_are_kept(tmp_path: Path) -> None:
    found = layer_norms(record(tmp_path / "run"))
    # Two in the block, one at the end of the model.
    assert len(found) == 3
    for site, chain in found:
        assert (site["file"], site["line"], site["is_user"]) == (HERE, LINE, True)
        assert chain[0]["file"] == "transformers/models/gpt2/modeling_gpt2.py"
        assert not chain[0]["is_user"]
        assert "ln_" in chain[0]["code"]
        assert next(frame for frame in chain if frame["is_user"]) == site


def test_a_glob_makes_a_library_user_code(tmp_path: Path) -> None:
    found = layer_norms(record(tmp_path / "run", user_code=["transformers/models/*"]))
    assert len(found) == 3
    for site, chain in found:
        assert site == chain[0]
        assert site["is_user"]
        assert site["file"] == "transformers/models/gpt2/modeling_gpt2.py"


def test_a_glob_leaves_a_library_out(tmp_path: Path) -> None:
    found = layer_norms(record(tmp_path / "run", library_code=["transformers/*"]))
    assert len(found) == 3
    assert {frame["file"] for _, chain in found for frame in chain if not frame["is_user"]} <= {
        frame["file"]
        for _, chain in found
        for frame in chain
        if not frame["file"].startswith("transformers/")
    }
    assert all(site["line"] == LINE for site, _ in found)


def test_torchs_own_lines_are_kept_on_request(tmp_path: Path) -> None:
    plain = layer_norms(record(tmp_path / "run"))
    asked = layer_norms(record(tmp_path / "asked", user_code=["torch/nn/modules/normalization.py"]))
    assert not any("torch/" in frame["file"] for _, chain in plain for frame in chain)
    assert all(chain[0]["file"] == "torch/nn/modules/normalization.py" for _, chain in asked)
    assert all("F.layer_norm" in chain[0]["code"] for _, chain in asked)
