"""Operations and bytes of op calls: by hand, against torch's own counter, and against TraceLens on real traces."""

from __future__ import annotations

import json
import math
from typing import Any

import pytest

from explorer.analysis.flops import pointwise
from explorer.analysis.flops.attention import visible_pairs
from explorer.analysis.flops.call import Call, dtype_name
from explorer.analysis.flops.models import FAMILIES, family_of, work_of
from tests.analysis.imported import imported
from tests.traces import all_traces, oracle


def call(
    name: str, shapes: list[Any], dtypes: list[str] | str = "float", concrete: list[str] | None = None
) -> Call:
    types = [dtypes if shape else "" for shape in shapes] if isinstance(dtypes, str) else dtypes
    return Call(name, shapes, types, concrete or [""] * len(shapes))


def work(*arguments: Any, **keywords: Any) -> tuple[str, int, int]:
    found = work_of(call(*arguments, **keywords))
    assert found is not None
    return found[0], found[1].flops, found[1].size_bytes


@pytest.mark.parametrize(
    ("name", "shapes", "dtype", "flops", "size"),
    [
        ("aten::mm", [[3, 4], [4, 5]], "float", 120, 4 * (12 + 20 + 15)),
        ("aten::mm", [[3, 4], [4, 5]], "c10::Half", 120, 2 * (12 + 20 + 15)),
        ("aten::addmm", [[5], [3, 4], [4, 5], [], []], "float", 120 + 15, 4 * (5 + 12 + 20 + 15)),
        ("aten::bmm", [[2, 3, 4], [2, 4, 5]], "float", 240, 4 * (24 + 40 + 30)),
        ("aten::linear", [[2, 3, 4], [5, 4], [5]], "float", 240 + 30, 4 * (24 + 20 + 5 + 30)),
        ("aten::dot", [[7], [7]], "float", 14, 4 * 15),
        ("aten::mv", [[3, 4], [4]], "float", 24, 4 * (12 + 4 + 3)),
        ("aten::native_layer_norm", [[2, 8], [], [8], [8], []], "float", 7 * 16, 8 * 16),
        ("aten::_softmax", [[2, 8], [], []], "c10::BFloat16", 5 * 16, 4 * 16),
        ("aten::add", [[2, 3], [3], []], "float", 6, 4 * (6 + 3 + 6)),
        ("aten::mul_", [[2, 3], [1]], "float", 6, 4 * (6 + 1 + 6)),
        ("aten::copy_", [[2, 3], [3], []], "float", 0, 4 * (3 + 6)),
        ("aten::fill_", [[2, 3], []], "float", 0, 24),
        ("aten::gelu", [[10], []], "float", 80, 80),
        ("aten::sum", [[2, 3], []], "float", 6, 24),
        ("aten::embedding", [[100, 8], [2, 3], [], [], []], "float", 0, 4 * (2 * 48 + 6)),
    ],
)
def test_by_hand(name: str, shapes: list[Any], dtype: str, flops: int, size: int) -> None:
    assert work(name, shapes, dtype)[1:] == (flops, size)


def test_convolution_strides_groups_and_bias() -> None:
    concrete = ["", "", "", "[2, 2]", "[1, 1]", "[1, 1]", "False", "[0, 0]", "2"]
    shapes = [[1, 4, 8, 8], [6, 2, 3, 3], [6], [], [], [], [], [], []]
    family, flops, size = work("aten::convolution", shapes, concrete=concrete)
    outputs = 6 * 4 * 4
    assert (family, flops) == ("convolution", 2 * outputs * 2 * 9 + outputs)
    assert size == 4 * (4 * 64 + 6 * 2 * 9 + outputs + 6)


def test_convolution_backward_counts_the_gradients_asked_for() -> None:
    def mask(text: str) -> int:
        concrete = ["", "", "", "[]", "[1]", "[0]", "[1]", "False", "[0]", "1", text]
        shapes = [[1, 6, 6, 6], [1, 4, 8, 8], [6, 4, 3, 3], [], [], [], [], [], [], [], []]
        return work("aten::convolution_backward", shapes, concrete=concrete)[1]

    product = 2 * 6 * 36 * 4 * 9
    assert mask("[True, True, False]") == 2 * product
    assert mask("[False, True, False]") == product
    assert mask("[False, True, True]") == product + 6 * 36


def test_attention_full_and_causal() -> None:
    shapes = [[2, 3, 8, 16], [2, 3, 8, 16], [2, 3, 8, 16], [], [], []]
    full = work("aten::_scaled_dot_product_flash_attention", shapes, concrete=["", "", "", "0.", "False", ""])
    causal = work(
        "aten::_scaled_dot_product_flash_attention", shapes, concrete=["", "", "", "0.", "True", ""]
    )
    assert full[1] == 2 * 2 * 3 * 8 * 8 * 32
    assert causal[1] == 2 * 2 * 3 * (8 * 9 // 2) * 32
    assert full[2] == causal[2] == 4 * 4 * 2 * 3 * 8 * 16


@pytest.mark.parametrize(("length", "other"), [(1, 1), (4, 4), (3, 7), (7, 3), (5, 0)])
def test_visible_pairs(length: int, other: int) -> None:
    assert visible_pairs(length, other) == sum(1 for q in range(length) for k in range(other) if k <= q)


def test_optimizer_lists() -> None:
    shapes = [[[2, 3], [4]]] * 5 + [[]]
    family, flops, size = work("aten::_fused_adamw_", shapes, dtypes=["TensorList"] * 5 + [""])
    assert (family, flops, size) == ("optimizer", 150, 7 * 10 * 4)
    assert (
        work("aten::_foreach_add_", [[[2, 3], [4]], [[2, 3], [4]], []], dtypes=["TensorList"] * 2 + [""])[1]
        == 10
    )


def test_shapes_that_do_not_fit_have_no_model() -> None:
    assert work_of(call("aten::mm", [[3, 4], [5, 6]])) is None
    assert work_of(call("aten::mm", [[], []])) is None
    assert work_of(call("aten::add", [[2, 3], [4]])) is None
    assert work_of(call("aten::convolution", [[1, 4, 8, 8]])) is None
    assert work_of(call("my::op", [[1]])) is None
    assert Call.parse("aten::mm", "no list", None, None) is None
    assert pointwise.broadcast([]) == 1


def test_every_family_says_its_formula_and_no_op_has_two() -> None:
    from importlib import import_module

    modules = [import_module(f"explorer.analysis.flops.{name}") for name in FAMILIES]
    assert sum(len(module.OPS) for module in modules) == len(family_of())
    for module in modules:
        assert module.__doc__
        assert module.FAMILY


def test_dtype_names() -> None:
    names = ("float", "c10::Half", "c10::BFloat16", "long int", "c10::Float8_e4m3fn", "Scalar", "")
    assert [dtype_name(n) for n in names] == ["float32", "float16", "bfloat16", "int64", "float8", None, None]


def test_equal_to_the_counter_of_torch() -> None:
    torch = pytest.importorskip("torch")
    from torch.utils.flop_counter import FlopCounterMode

    a, b = torch.randn(6, 7), torch.randn(7, 8)
    image, weight = torch.randn(2, 4, 9, 9), torch.randn(6, 4, 3, 3)
    with FlopCounterMode(display=False) as counter:
        torch.mm(a, b)
        torch.nn.functional.conv2d(image, weight, stride=2, padding=1)
    ours = work("aten::mm", [[6, 7], [7, 8]])[1]
    concrete = ["", "", "", "[2, 2]", "[1, 1]", "[1, 1]", "False", "[0, 0]", "1"]
    ours += work(
        "aten::convolution", [[2, 4, 9, 9], [6, 4, 3, 3], [], [], [], [], [], [], []], concrete=concrete
    )[1]
    assert counter.get_total_flops() == ours


WITH_SHAPES = (
    "Falconsai",
    "resnet_act_checkpoint",
    "torch_compile_triton",
    "xdit_flux",
    "minitoy",
    "multirank_dlrm",
)
REAL = [name for name in all_traces("tracelens") if any(part in name for part in WITH_SHAPES)]


@pytest.mark.parametrize("name", REAL)
def test_equal_to_tracelens_where_the_definition_is_the_same(name: str) -> None:
    """Products and attention agree to the operation and the byte; TraceLens counts no bias in convolutions."""
    rows = imported(name).engine.sql(
        """
        SELECT name, shapes, any_value(dtypes) AS dtypes,
               any_value(json_extract(attributes, '$."Concrete Inputs"'))::VARCHAR AS concrete
        FROM events WHERE category = 'op' AND shapes IS NOT NULL GROUP BY ALL
        """
    )
    known = {(r["name"], json.dumps(json.loads(r["shapes"]))): r for r in rows.rows()}
    compared = 0
    for record in oracle("tracelens", name)["unified_perf"]["records"]:
        row = known.get((record["name"], json.dumps(record["Input Dims"])))
        if not record.get("has_perf_model") or row is None or row["name"] not in family_of():
            continue
        found = work_of(Call.parse(**row))  # type: ignore[arg-type]
        if found is None or found[0] not in ("matmul", "attention", "convolution"):
            continue
        family, ours = found
        expected = record["GFLOPS"] * 1e9
        if family == "convolution" and "backward" not in row["name"]:
            expected += int(ours.formula.split(" + ")[1]) if " + " in ours.formula else 0
        elif family == "convolution":
            # TraceLens counts both gradients even where only one is asked for.
            expected *= int(ours.formula[0]) / 2
        assert math.isclose(ours.flops, expected, rel_tol=1e-9), (row, ours)
        compared += 1
    assert compared > 0


HALF = "c10::BFloat16"


@pytest.mark.parametrize(
    ("name", "shapes", "concrete", "expected"),
    [
        # From a real trace (torch 2.x on an AMD GPU): mul once, silu four operations per element.
        (
            "triton_poi_fused__unsafe_view_mul_silu_2",
            [[8, 4096, 8192], [32768, 8192], []],
            ["", "", "268435456"],
            ("fused", 5 * 268435456, 4 * 268435456),
        ),
        # add, mean, mul, pow once and rsqrt twice per element; the loop is xnumel x rnumel.
        (
            "triton_red_fused_add_mean_mul_pow_rsqrt_0",
            [[8, 4096, 2048], [2048], [8, 4096, 2048], [], []],
            ["", "", "", "32768", "2048"],
            ("fused", 6 * 32768 * 2048, 2 * (2 * 8 * 4096 * 2048 + 2048)),
        ),
        ("triton_per_fused_native_layer_norm_4", [[6, 8], [], []], ["", "6", "8"], ("fused", 7 * 48, 96)),
        # An exp inside expand is none.
        ("triton_poi_fused_expand_sequence_1", [[4], []], ["", "4"], ("fused", 0, 8)),
        (
            "triton_tem_fused_flex_attention_0",
            [[2, 4, 128, 64], [2, 4, 256, 64], [2, 4, 256, 32], [2, 4, 128]],
            ["", "", "", ""],
            ("attention", 2 * 2 * 4 * 128 * 256 * (64 + 32), 2 * 8 * (128 * 64 + 256 * 96 + 128 * 32)),
        ),
        (
            "triton_tem_fused_flex_attention_backward_zeros_1",
            [[1, 2, 8, 16], [1, 2, 8, 16], [1, 2, 8, 16]],
            ["", "", ""],
            ("attention", 2 * 2 * 64 * (3 * 16 + 2 * 16), 2 * (2 * 3 * 256 + 2 * 256)),
        ),
        ("triton_tem_fused_mm_3", [[3, 4], [4, 5], [3, 5]], ["", "", ""], ("matmul", 120, 2 * 47)),
        (
            "triton_tem_fused__to_copy_addmm_relu_7",
            [[3, 4], [4, 5], [3, 5]],
            ["", "", ""],
            ("matmul", 120, 2 * 47),
        ),
    ],
)
def test_generated_kernels(
    name: str, shapes: list[Any], concrete: list[str], expected: tuple[str, int, int]
) -> None:
    types = [HALF if shape else "Scalar" for shape in shapes]
    assert work(name, shapes, types, concrete) == expected


def test_a_generated_kernel_without_its_loop_has_no_model() -> None:
    assert work_of(call("triton_poi_fused_add_0", [[4], []], ["float", "Scalar"], ["", ""])) is None
    assert work_of(call("triton_my_own_kernel", [[4], []], ["float", "Scalar"], ["", "4"])) is None


def test_generated_kernels_of_a_real_trace() -> None:
    run = imported("amd/tl_torch_compile_triton.json.gz")
    rows = run.engine.sql(
        "SELECT name, family, formula FROM op_work WHERE family = 'fused' ORDER BY name"
    ).rows()
    assert [(row["name"], row["formula"]) for row in rows] == [
        ("triton_poi_fused__unsafe_view_add_3", "1 x 67108864 (at least)"),
        ("triton_poi_fused__unsafe_view_mul_silu_2", "5 x 268435456 (at least)"),
        ("triton_red_fused__unsafe_view_add_mean_mul_pow_rsqrt_1", "6 x 67108864 (at least)"),
        ("triton_red_fused_add_mean_mul_pow_rsqrt_0", "6 x 67108864 (at least)"),
    ]
