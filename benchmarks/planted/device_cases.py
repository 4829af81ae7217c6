"""What a CPU cannot show: event tables of accelerator runs written by hand, each with one planted fault and its line."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from tests.analysis.run_builder import RunBuilder, at

STEP = 10_000.0
STEPS = 4


@dataclass(frozen=True)
class DeviceCase:
    """`build` writes the run and returns the line numbers that may be named (empty: the run knows no lines)."""

    name: str
    rule: str
    build: Callable[[RunBuilder], tuple[int, ...]]


CASES: list[DeviceCase] = []


def case(
    rule: str,
) -> Callable[[Callable[[RunBuilder], tuple[int, ...]]], Callable[[RunBuilder], tuple[int, ...]]]:
    """Register a case under its function's name."""

    def register(build: Callable[[RunBuilder], tuple[int, ...]]) -> Callable[[RunBuilder], tuple[int, ...]]:
        CASES.append(DeviceCase(build.__name__, rule, build))
        return build

    return register


class Device:
    """A run on one stream: launches and kernels placed in step time (microseconds)."""

    def __init__(self, builder: RunBuilder) -> None:
        self.b = builder
        builder.made_by = "import"
        self.stream = builder.stream()
        builder.steps(STEPS, STEP)
        self.model = builder.line(50, "loss = model(x)")
        self.step = 0.0

    def launch(self, name: str, at: float, duration: float, *, host: float | None = None, site: int | None = None, op: str = "aten::mm",
               category: str = "kernel", call: str = "cudaLaunchKernel", host_us: float = 8.0, **more: object) -> int:  # fmt: skip
        """An op with its launch call at `host` (default: 20 µs before) and the device work at `at`."""
        host = (at - 20 if host is None else host) + self.step
        site = site or self.model
        parent = self.b.op(op, host, host_us, site=site, **more)
        called = self.b.event("runtime", call, host + 1, min(5.0, host_us - 2), site=site, parent=parent)
        work = self.b.event(
            category,
            name,
            at + self.step,
            duration,
            track=self.stream,
            site=site,
            launch_id=called,
            op_id=parent,
        )
        self.b.row("edges", source_id=called, target_rank=0, target_id=work, kind="launch")
        return parent

    def each_step(self, body: Callable[[], None]) -> None:
        for number in range(STEPS):
            self.step = number * STEP
            body()
            # When all is enqueued the program reads its loss, and waits for the device.
            host = [row for row in self.b.rows["events"] if row["track_id"] == self.b.main]
            done = (max(row["start_ns"] + row["duration_ns"] for row in host) - at(self.step)) / 1000 + 5
            if done < STEP - 10:
                self.b.event(
                    "sync", "cudaDeviceSynchronize", self.step + done, STEP - 2 - done, site=self.model
                )


def _busy(device: Device, start: float, end: float, host: float | None = None) -> None:
    """Large kernels back to back, launched far ahead, or from the host time given."""
    first = start / 30 if host is None else host
    count = max(1, int((end - start) // 500))
    length = (end - start) / count
    for i in range(count):
        device.launch("ampere_bf16_s16816gemm", start + i * length, length, host=first + i * 12)


@case("host_sync")
def item_in_the_middle_of_the_step(b: RunBuilder) -> tuple[int, ...]:
    device = Device(b)
    line = b.line(57, "total += loss.item()")

    def body() -> None:
        _busy(device, 100, 6_000)
        outer = b.op("aten::item", device.step + 700, 5_350, site=line)
        b.event("sync", "cudaStreamSynchronize", device.step + 710, 5_300, site=line, parent=outer)
        _busy(device, 7_000, 10_000, host=6_900)

    device.each_step(body)
    return (57,)


@case("host_sync")
def boolean_mask_waits(b: RunBuilder) -> tuple[int, ...]:
    device = Device(b)
    line = b.line(61, "x = x[mask]")

    def body() -> None:
        _busy(device, 100, 4_000)
        outer = b.op("aten::nonzero", device.step + 500, 3_560, site=line)
        b.event("sync", "cudaStreamSynchronize", device.step + 510, 3_500, site=line, parent=outer)
        _busy(device, 4_700, 10_000, host=4_600)

    device.each_step(body)
    return (61,)


@case("tiny_ops")
def launch_bound(b: RunBuilder) -> tuple[int, ...]:
    device = Device(b)

    def body() -> None:
        for i in range(480):
            device.launch("elementwise_kernel", 20 + i * 20, 4, op="aten::mul")

    device.each_step(body)
    return (50,)


@case("host_bound")
def python_between_launches(b: RunBuilder) -> tuple[int, ...]:
    device = Device(b)
    line = b.line(33, "tokens = tokenizer(texts)")

    def body() -> None:
        b.state(line, device.step, 4_000)
        b.state(device.model, device.step + 4_000, 6_000)
        _busy(device, 4_100, 10_000, host=4_010)

    device.each_step(body)
    return (33,)


@case("exposed_copies")
def pageable_batch_copy(b: RunBuilder) -> tuple[int, ...]:
    device = Device(b)
    line = b.line(48, "x = x.to('cuda')")

    def body() -> None:
        device.launch(
            "Memcpy HtoD (Pageable -> Device)",
            50,
            1_500,
            site=line,
            op="aten::copy_",
            category="copy",
            call="cudaMemcpyAsync",
        )
        _busy(device, 1_600, 10_000)

    device.each_step(body)
    return (48,)


@case("transfer_ping_pong")
def numpy_in_the_forward_pass(b: RunBuilder) -> tuple[int, ...]:
    device = Device(b)
    out, back = b.line(52, "a = h.cpu().numpy()"), b.line(54, "h = torch.from_numpy(a).cuda()")
    size = 8_000_000

    def copy(name: str, start: float, host: float, site: int) -> None:
        device.launch(
            name, start, 900, host=host, site=site, op="aten::copy_", category="copy", call="cudaMemcpyAsync"
        )
        b.rows["events"][-1]["size_bytes"] = size

    def body() -> None:
        _busy(device, 100, 4_000)
        copy("Memcpy DtoH (Device -> Pageable)", 4_000, 200, out)
        b.event("sync", "cudaStreamSynchronize", device.step + 215, 4_690, site=out)
        copy("Memcpy HtoD (Pageable -> Device)", 5_500, 5_450, back)
        _busy(device, 6_400, 10_000, host=5_470)

    device.each_step(body)
    return (52, 54)


@case("exposed_communication")
def all_reduce_after_backward(b: RunBuilder) -> tuple[int, ...]:
    device = Device(b)
    line = b.line(58, "dist.all_reduce(p.grad)")
    other = b.stream(label="stream 20")

    def body() -> None:
        _busy(device, 100, 7_000)
        event = b.event(
            "collective",
            "ncclDevKernel_AllReduce_Sum_f32",
            device.step + 7_000,
            2_900,
            track=other,
            site=line,
        )
        b.row("collectives", event_id=event, side="device", operation="all_reduce", size_bytes=50_000_000)

    device.each_step(body)
    return (58,)


@case("fp32_matmul")
def full_precision_products(b: RunBuilder) -> tuple[int, ...]:
    device = Device(b)
    b.row("devices", device="cuda:0", name="NVIDIA A100", vendor="nvidia")

    def body() -> None:
        for i in range(9):
            device.launch("ampere_sgemm_128x64_tn", 100 + i * 1_100, 1_100, host=20 + i * 12)

    device.each_step(body)
    return (50,)


@case("unaligned_dims")
def odd_vocabulary(b: RunBuilder) -> tuple[int, ...]:
    device = Device(b)
    line = b.line(44, "logits = self.head(h)")

    def body() -> None:
        device.launch(
            "ampere_bf16_gemm_align1",
            100,
            6_000,
            host=20,
            site=line,
            shapes="[[4096,768],[768,50257]]",
            dtypes='["c10::BFloat16","c10::BFloat16"]',
        )
        _busy(device, 6_100, 10_000)

    device.each_step(body)
    return (44,)


@case("allocator_churn")
def empty_cache_in_the_loop(b: RunBuilder) -> tuple[int, ...]:
    device = Device(b)
    line = b.line(70, "torch.cuda.empty_cache()")

    def body() -> None:
        _busy(device, 1_300, 10_000, host=1_210)
        for i in range(3):
            b.event("runtime", "cudaFree", device.step + i * 400, 390, site=line)

    device.each_step(body)
    return (70,)


@case("debug_mode")
def blocking_launches(b: RunBuilder) -> tuple[int, ...]:
    device = Device(b)

    def body() -> None:
        for i in range(25):
            at = device.step + i * 400
            parent = b.op("aten::mm", at, 215, site=device.model)
            called = b.event("runtime", "cudaLaunchKernel", at + 2, 212, site=device.model, parent=parent)
            b.event(
                "kernel",
                "gemm_bf16",
                at + 8,
                200,
                track=device.stream,
                site=device.model,
                launch_id=called,
                op_id=parent,
            )

    device.each_step(body)
    return ()


@case("unfused_attention")
def attention_on_the_math_path(b: RunBuilder) -> tuple[int, ...]:
    device = Device(b)
    line = b.line(25, "y = F.scaled_dot_product_attention(q, k, v, mask)")

    def body() -> None:
        outer = b.op("aten::scaled_dot_product_attention", device.step, 90, site=line)
        math = b.op("aten::_scaled_dot_product_attention_math", device.step + 1, 88, site=line, parent=outer)
        for i, name in enumerate(("bmm_bf16", "softmax_warp_forward", "bmm_bf16")):
            called = b.event(
                "runtime", "cudaLaunchKernel", device.step + 10 + i * 20, 5, site=line, parent=math
            )
            b.event(
                "kernel",
                name,
                device.step + 100 + i * 1_500,
                1_500,
                track=device.stream,
                site=line,
                launch_id=called,
                op_id=math,
            )
        _busy(device, 4_600, 10_000)

    device.each_step(body)
    return (25,)


@case("unfused_attention")
def attention_by_hand_on_a_device(b: RunBuilder) -> tuple[int, ...]:
    device = Device(b)
    scores, weights = (
        b.line(21, "s = q @ k.transpose(-2, -1) * scale", "attend"),
        b.line(22, "y = s.softmax(-1) @ v", "attend"),
    )

    def body() -> None:
        device.launch("bmm_bf16", 100, 1_500, host=10, site=scores, op="aten::matmul")
        device.launch("elementwise_kernel", 1_600, 600, host=20, site=scores, op="aten::mul")
        device.launch("softmax_warp_forward", 2_200, 900, host=30, site=weights, op="aten::softmax")
        device.launch("bmm_bf16", 3_100, 1_500, host=40, site=weights, op="aten::matmul")
        _busy(device, 4_600, 10_000)

    device.each_step(body)
    return (21, 22)


@case("cpu_fallback")
def product_on_the_host(b: RunBuilder) -> tuple[int, ...]:
    device = Device(b)
    line = b.line(39, "w = table @ ids.float()")

    def body() -> None:
        b.op("aten::matmul", device.step + 10, 2_500, site=line)
        _busy(device, 2_700, 10_000, host=2_600)

    device.each_step(body)
    return (39,)


@case("dtype_churn")
def casts_around_every_layer(b: RunBuilder) -> tuple[int, ...]:
    device = Device(b)
    line = b.line(29, "x = layer(x.half()).float()", "forward")

    def cast(at: float, kind: str) -> None:
        parent = device.launch(
            "elementwise_kernel_cast", 100 + at, 400, host=at / 30, site=line, op="aten::to"
        )
        b.op("aten::_to_copy", device.step + at / 30 + 0.5, 7, site=line, parent=parent, dtypes=f'["{kind}"]')

    def body() -> None:
        for i in range(3):
            cast(i * 1_600, "float")
            device.launch("gemm_bf16", 500 + i * 1_600, 800, host=(i * 1_600 + 500) / 30, site=line)
            cast(i * 1_600 + 1_200, "c10::Half")
        _busy(device, 4_900, 10_000)

    device.each_step(body)
    return (29,)


@case("contiguous_copies")
def transposes_copied(b: RunBuilder) -> tuple[int, ...]:
    device = Device(b)
    line = b.line(31, "x = x.permute(0, 2, 1).contiguous()", "forward")

    def body() -> None:
        parent = device.launch(
            "elementwise_kernel_copy", 100, 1_500, host=10, site=line, op="aten::contiguous"
        )
        b.op("aten::clone", device.step + 10.5, 7, site=line, parent=parent)
        _busy(device, 1_600, 10_000)

    device.each_step(body)
    return (31,)


@case("data_loader_stall")
def device_waits_for_the_batch(b: RunBuilder) -> tuple[int, ...]:
    device = Device(b)
    line = b.line(40, "for x, y in loader:")

    def body() -> None:
        b.event(
            "data",
            "enumerate(DataLoader)#_MultiProcessingDataLoaderIter.__next__",
            device.step,
            3_000,
            site=line,
        )
        _busy(device, 3_150, 10_000, host=3_050)

    device.each_step(body)
    return (40,)


@case("recompute")
def checkpointed_layers(b: RunBuilder) -> tuple[int, ...]:
    device = Device(b)
    line = b.line(36, "x = checkpoint(layer, x)")

    def body() -> None:
        for i in range(8):
            at = device.step + i * 1_200
            outer = b.op(
                "autograd::engine::evaluate_function: CheckpointFunctionBackward",
                at,
                1_100,
                phase="backward",
                site=line,
            )
            inner = b.op(
                "CheckpointFunctionBackward", at + 1, 1_098, parent=outer, phase="backward", site=line
            )
            first = b.op("aten::linear", at + 5, 200, parent=inner, phase="backward", site=line)
            b.op("aten::gelu", at + 210, 100, parent=inner, phase="backward", site=line)
            called = b.event("runtime", "cudaLaunchKernel", at + 10, 5, parent=first)
            b.event(
                "kernel",
                "gemm_bf16",
                at + 30,
                1_000,
                track=device.stream,
                launch_id=called,
                op_id=first,
                site=line,
            )

    device.each_step(body)
    return (36,)


@case("single_tensor_optimizer")
def optimizer_holds_up_the_device(b: RunBuilder) -> tuple[int, ...]:
    device = Device(b)
    line = b.line(60, "optimizer.step()")

    def body() -> None:
        _busy(device, 100, 6_000)
        outer = b.event("annotation", "Optimizer.step#AdamW.step", device.step + 6_000, 3_900, site=line)
        for i in range(190):
            parent = device.launch("elementwise_kernel", 6_030 + i * 20, 4, site=line, op="aten::mul_")
            b.rows["events"][-3]["parent_id"] = outer
            assert parent

    device.each_step(body)
    return (60,)


@case("throttling")
def clock_held_down(b: RunBuilder) -> tuple[int, ...]:
    device = Device(b)
    track = b.track("counter", "cuda", 0, "cuda:0")

    def body() -> None:
        _busy(device, 100, 10_000)
        for i in range(5):
            throttled = i > 0
            for name, value in (
                ("throttled", float(throttled)),
                ("sm_clock", 1.2e9 if throttled else 1.98e9),
            ):
                b.row(
                    "counters",
                    track_id=track,
                    timestamp_ns=at(device.step + i * 2_000),
                    name=name,
                    value=value,
                    unit="",
                )

    device.each_step(body)
    return ()
