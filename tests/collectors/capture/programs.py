"""Small programs in every shape that Python code around tensors takes; each is one function of no arguments."""

from __future__ import annotations

import asyncio
import contextlib
import functools
import threading
from collections.abc import AsyncIterator, Callable, Iterator
from dataclasses import dataclass
from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor, nn
from torch.utils.checkpoint import checkpoint
from torch.utils.data import DataLoader, Dataset

PROGRAMS: dict[str, Callable[[], Any]] = {}


def program(function: Callable[[], Any]) -> Callable[[], Any]:
    PROGRAMS[function.__name__] = function
    return function


def ones(*shape: int, grad: bool = False) -> Tensor:
    return torch.ones(*(shape or (2, 2)), requires_grad=grad)


@program
def operators() -> None:
    a, b = ones(), ones()
    c = a + b
    c = c @ a
    c += b
    c = -c
    d = c[0] * 2
    d[1] = 3
    e = d > 1
    c[:, 0].add_(1)
    a = a / b - c**2
    del a, e


@program
def several_ops_on_one_line() -> Tensor:
    a = ones()
    return (a + 1) * (a - 1) @ a.t() if a.sum() > 0 else a


@program
def operator_after_a_call_on_the_same_line() -> Tensor:
    def inner(x: Tensor) -> Tensor:
        return x * 2

    return inner(ones()) + inner(ones()) * 3


@program
def calls_over_several_lines() -> Tensor:
    return torch.cat(
        [
            ones() + 1,
            ones() * 2,
        ],
        dim=0,
    ).sum(dim=0)


@program
def comprehensions() -> Any:
    data = [ones() * i for i in range(3)]
    by_name = {i: x + 1 for i, x in enumerate(data)}
    total = sum(x.sum() for x in data)
    nested = [[x * y for x in data] for y in (1, 2)]
    return by_name, total, nested, {float(x.mean()) for x in data}


@program
def generators() -> None:
    def numbers(count: int) -> Iterator[Tensor]:
        x = ones()
        for _ in range(count):
            x = x + 1
            got = yield x
            if got is not None:
                x = x * got

    def outer() -> Iterator[Tensor]:
        first = ones() * 5
        yield first
        yield from numbers(2)
        first.add_(1)

    for value in outer():
        value.mul_(2)
    one = numbers(3)
    next(one)
    one.send(ones() * 2)
    one.close()
    ones().neg_()


@program
def coroutines() -> None:
    async def stream(count: int) -> AsyncIterator[Tensor]:
        for _ in range(count):
            await asyncio.sleep(0)
            yield ones() + 1

    async def work(count: int) -> Tensor:
        x = ones()
        await asyncio.sleep(0)
        x = x * count
        async for y in stream(2):
            x = x + y
        return x

    async def main() -> None:
        a, b = await asyncio.gather(work(1), work(2))
        (a + b).sum()

    asyncio.run(main())


@program
def context_managers() -> None:
    class Scaled:
        def __enter__(self) -> Tensor:
            return ones() * 2

        def __exit__(self, *error: object) -> None:
            ones().add_(3)

    @contextlib.contextmanager
    def doubled(x: Tensor) -> Iterator[Tensor]:
        y = x * 2
        yield y
        y.zero_()

    with Scaled() as a, doubled(a) as b:
        c = a + b
    c.mul_(2)


@program
def decorators() -> None:
    def twice(function: Callable[[Tensor], Tensor]) -> Callable[[Tensor], Tensor]:
        @functools.wraps(function)
        def wrapped(x: Tensor) -> Tensor:
            x = x + 1
            return function(function(x)) * 2

        return wrapped

    @twice
    def body(x: Tensor) -> Tensor:
        return x.exp()

    body(ones())


@program
def lambdas_and_partials() -> None:
    square = lambda x: x * x  # noqa: E731
    add = functools.partial(torch.add, ones())
    square(ones()) + add(ones())
    (lambda x: x - 1)(ones()).abs()


@program
def recursion() -> Tensor:
    def down(x: Tensor, depth: int) -> Tensor:
        if depth == 0:
            return x + 1
        below = down(x * 2, depth - 1)
        return below - 1

    return down(ones(), 4)


@program
def callbacks_from_library_code() -> None:
    data = [ones() * i for i in (3, 1, 2)]
    sorted(data, key=lambda x: float(x.sum()))
    functools.reduce(lambda a, b: a + b, data)
    list(map(lambda x: x * 2, data))  # noqa: C417
    torch.utils._pytree.tree_map(lambda x: x - 1, {"a": data})


@program
def special_methods() -> None:
    class Wrapped:
        def __init__(self, x: Tensor) -> None:
            self.x = x * 1

        def __add__(self, other: Wrapped) -> Wrapped:
            return Wrapped(self.x + other.x)

        def __getitem__(self, at: int) -> Tensor:
            return self.x[at]

        def __call__(self, y: Tensor) -> Tensor:
            return self.x @ y

        @property
        def total(self) -> Tensor:
            return self.x.sum()

        def __del__(self) -> None:
            self.x.add_(1)

    both = Wrapped(ones()) + Wrapped(ones())
    both[0].mul_(2)
    both(ones())
    both.total.neg()
    del both
    ones().abs()


@program
def exceptions() -> None:
    def fails(x: Tensor) -> Tensor:
        x = x + 1
        raise ValueError(x.sum())

    try:
        fails(ones())
    except ValueError:
        ones().mul_(2)
    finally:
        ones().add_(2)
    with contextlib.suppress(RuntimeError):
        ones(2, 3) @ ones(2, 3)
    ones().neg()


@program
def loops_and_branches() -> Tensor:
    x = ones()
    while (y := x.sum()) < 20:
        x = x * 2
    for i in range(3):
        if i == 1:
            continue
        x = x - 1
    else:
        x = x.abs()
    match int(x[0, 0]):
        case 0:
            x = x + 1
        case n if (ones() * n).sum() > 0:
            x = x + 2
        case _:
            x = x + 3
    return x + y


@program
def executed_text() -> None:
    scope: dict[str, Any] = {"torch": torch}
    exec("x = torch.ones(2)\ny = x + 1\nfor _ in range(2):\n    y = y * x\n", scope)
    exec(compile("def made(x):\n    y = x - 1\n    return y.abs()\n", "<generated>", "exec"), scope)
    scope["made"](scope["y"])
    eval("made(x) + y", scope)


@program
def notebook_cells() -> None:
    scope: dict[str, Any] = {"torch": torch, "__name__": "__main__"}
    cell = "x = torch.ones(3)\n\ndef cell_function(x):\n    return x * 2\n\ny = cell_function(x) + 1\n"
    exec(compile(cell, "/tmp/ipykernel_4711/1234567.py", "exec"), scope)
    exec(compile("z = cell_function(y)", "<ipython-input-2-abc>", "exec"), scope)


@program
def dataclass_methods() -> None:
    @dataclass
    class Box:
        x: Tensor

        def __post_init__(self) -> None:
            self.x = self.x + 1

        def grow(self) -> Tensor:
            return self.x * 2

    Box(ones()).grow()


class Block(nn.Module):
    def __init__(self, width: int = 4) -> None:
        super().__init__()
        self.first = nn.Linear(width, width)
        self.second = nn.Linear(width, width)

    def forward(self, x: Tensor) -> Tensor:
        h = self.first(x)
        h = F.relu(h)
        h = h * 2
        return x + self.second(h)


@program
def modules_forward_and_backward() -> None:
    model = nn.Sequential(Block(), Block())
    out = model(ones(2, 4))
    loss = (out**2).mean()
    loss.backward()


@program
def module_hooks() -> None:
    block = Block()
    block.register_forward_pre_hook(lambda module, args: (args[0] + 1,))
    block.first.register_forward_hook(lambda module, args, out: out * 3)
    block.register_full_backward_hook(lambda module, grad_in, grad_out: (grad_out[0] * 2,))
    block(ones(2, 4, grad=True)).sum().backward()


@program
def tensor_hooks() -> None:
    x = ones(2, 2, grad=True)
    y = x * 2
    y.register_hook(lambda grad: grad + 1)

    def after(parameter: Tensor) -> None:
        parameter.grad.mul_(2)

    x.register_post_accumulate_grad_hook(after)
    (y * y).sum().backward()


class Cube(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, x: Tensor) -> Tensor:
        ctx.save_for_backward(x)
        y = x * x
        return y * x

    @staticmethod
    def backward(ctx: Any, grad: Tensor) -> Tensor:
        (x,) = ctx.saved_tensors
        square = x * x
        return 3 * square * grad


@program
def custom_function() -> None:
    x = ones(2, 2, grad=True)
    y = Cube.apply(x + 1)
    y = y * 2
    y.sum().backward()


@program
def without_gradients() -> None:
    block = Block()
    with torch.no_grad():
        block(ones(2, 4))

    @torch.inference_mode()
    def infer(x: Tensor) -> Tensor:
        return block(x).argmax(dim=1)

    infer(ones(2, 4))
    block(ones(2, 4)).sum().backward()


@program
def checkpoint_without_reentry() -> None:
    block = Block()
    x = ones(2, 4, grad=True)
    y = checkpoint(block, x, use_reentrant=False)
    (y * 2).sum().backward()


@program
def checkpoint_with_reentry() -> None:
    block = Block()
    x = ones(2, 4, grad=True)
    y = checkpoint(block, x, use_reentrant=True)
    (y * 2).sum().backward()


@program
def double_backward() -> None:
    x = ones(2, 2, grad=True)
    y = (x**3).sum()
    (grad,) = torch.autograd.grad(y, x, create_graph=True)
    penalty = (grad**2).sum()
    penalty.backward()


@program
def two_losses_and_accumulation() -> None:
    weight = ones(2, 2, grad=True)
    first = (ones() @ weight).sum()
    second = (weight * 3).mean()
    first.backward(retain_graph=True)
    (first + second).backward()


@program
def function_transforms() -> None:
    def loss(x: Tensor) -> Tensor:
        y = x * x
        return y.sum()

    torch.func.grad(loss)(ones())
    torch.func.vmap(lambda row: row * 2)(ones(3, 2))


@program
def optimizers() -> None:
    for make in (
        lambda p: torch.optim.SGD(p, lr=0.1, momentum=0.9, foreach=False),
        lambda p: torch.optim.AdamW(p, foreach=True),
        lambda p: torch.optim.Adam(p, fused=True),
    ):
        block = Block()
        optimizer = make(block.parameters())
        scheduler = torch.optim.lr_scheduler.StepLR(optimizer, 1)
        for _ in range(2):
            block(ones(2, 4)).sum().backward()
            nn.utils.clip_grad_norm_(block.parameters(), 1.0)
            optimizer.step()
            scheduler.step()
            optimizer.zero_grad()


class Squares(Dataset):
    def __len__(self) -> int:
        return 4

    def __getitem__(self, index: int) -> Tensor:
        x = ones(2) * index
        return x * x


@program
def data_loading() -> None:
    for batch in DataLoader(Squares(), batch_size=2, collate_fn=lambda rows: torch.stack(rows)):
        batch.sum()


@program
def class_bodies() -> None:
    class Constants:
        base = ones() * 2
        scaled = base + 1

    Constants.scaled.sum()


@program
def closures() -> None:
    state = ones()

    def grow() -> None:
        nonlocal state
        state = state * 2

    def run(action: Callable[[], None]) -> None:
        action()
        action()

    run(grow)
    f"{state.sum():.1f}"


@program
def iterators() -> None:
    class Countdown:
        def __init__(self) -> None:
            self.x = ones() * 3

        def __iter__(self) -> Countdown:
            return self

        def __next__(self) -> Tensor:
            self.x = self.x - 1
            if self.x.sum() <= 0:
                raise StopIteration
            return self.x

    for x in Countdown():
        x.abs()
    a, *rest = (x + 1 for x in [ones(), ones()])
    torch.stack([a, *rest])


@program
def python_threads() -> None:
    def work(times: int) -> None:
        x = ones()
        for _ in range(times):
            x = x * 2
        x.sum()

    threads = [threading.Thread(target=THREAD_WRAPPER(work), args=(n,)) for n in (2, 3)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    ones().abs()


def _plain(function: Callable[..., Any]) -> Callable[..., Any]:
    return function


THREAD_WRAPPER: Callable[[Callable[..., Any]], Callable[..., Any]] = _plain
"""The test puts the truth recorder of a new thread here."""
