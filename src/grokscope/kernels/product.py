"""Matrix products of a stack with the bits of a stack of two.

cuBLAS chooses a kernel by shape, and a kernel's sums are the same for every matrix of the stack. A stack of one is
computed as two, since alone it would get another kernel. That the choice is the same for the size at hand is not
promised by cuBLAS, so it is tried before the first product of every kind; where it is not, the stack is cut into
parts for which it is.
"""

from collections.abc import Callable

import torch
from torch import Tensor

__all__ = ["product"]

LARGE, PAIRS = 2.0**22, 4  # of a probe
ALIGNMENT = 256  # bytes

_FOUND: dict[tuple[object, ...], int] = {}


def product(a: Tensor, b: Tensor, out: Tensor | None = None) -> Tensor:
    """A b for each run, [runs, rows, columns]; `out` may have other strides and precision, and at least two runs."""
    runs = len(a)
    if runs == 1:
        both = out if out is None else out[:2]
        can_repeat = _known(_can_repeat, a, b, both)
        x, y = ((x.expand(2, -1, -1) if can_repeat else _stack_of_two(x)) for x in (a, b))
        return _multiply(x, y, both)[:1]
    result = None if out is None else out[:runs]
    size = _known(_largest_part, a, b, result)
    if size == runs:
        return _multiply(a, b, result)
    if result is None:
        result = a.new_empty(runs, a.shape[1], b.shape[2])
    for start in range(0, runs, size):
        part = slice(min(start, runs - 2), start + size)  # never one alone
        product(a[part], b[part], result[part])  # its own size is tried as well
    return result


def _multiply(a: Tensor, b: Tensor, out: Tensor | None) -> Tensor:
    if out is None:
        return torch.bmm(a, b)
    if out.dtype != a.dtype:
        return torch.bmm(a, b, out_dtype=out.dtype, out=out)
    return torch.bmm(a, b, out=out)


def _known(find: Callable[[Tensor, Tensor, Tensor | None], int], a: Tensor, b: Tensor, out: Tensor | None) -> int:
    """What is found for all products by which cuBLAS cannot tell them from this one."""
    if a.device.type != "cuda" or (find is _largest_part and len(a) == 2):
        return len(a)
    kinds = tuple((x.shape, x.stride(), x.dtype, x.data_ptr() % ALIGNMENT) for x in (a, b, out) if x is not None)
    key = (a.device, kinds, torch.get_float32_matmul_precision())
    if key not in _FOUND:
        _FOUND[key] = find(*_probe(a, b), None if out is None else _like(out, len(out)))
    return _FOUND[key]


def _can_repeat(a: Tensor, b: Tensor, out: Tensor | None) -> int:
    """Whether one matrix with a stride of 0 is multiplied as two in their own places are: 0 or 1."""
    repeated = _multiply(a.expand(2, -1, -1), b.expand(2, -1, -1), out).clone()
    return int(torch.equal(repeated, _multiply(_stack_of_two(a), _stack_of_two(b), out)))


def _largest_part(a: Tensor, b: Tensor, out: Tensor | None) -> int:
    """The largest stack, of at most this size, whose products have the bits of a stack of two."""
    size = len(a)
    while size > 2 and not _is_equal(a, b, out, size):
        size = max(2, size // 2)
    return size


def _is_equal(a: Tensor, b: Tensor, out: Tensor | None, size: int) -> bool:
    """Whether the first two and the last two of a stack of this size have the bits that they have as two."""
    ends = (slice(0, 2), slice(size - 2, size))
    found = _multiply(a[:size], b[:size], None if out is None else out[:size])
    whole = [found[end].clone() for end in ends]
    alone = [_multiply(a[end], b[end], None if out is None else out[end]) for end in ends]
    return all(torch.equal(*pair) for pair in zip(whole, alone, strict=True))


def _stack_of_two(x: Tensor) -> Tensor:
    """One matrix twice, at the distance at which a stack's matrices lie."""
    two = _like(x, 2)
    two[:] = x
    return two


def _like(x: Tensor, runs: int) -> Tensor:
    """Zeros for so many runs with the strides and alignment of another tensor, by which cuBLAS chooses."""
    shape = (runs, *x.shape[1:])
    numbers = 1 + sum((length - 1) * stride for length, stride in zip(shape, x.stride(), strict=True))
    offset = x.data_ptr() % ALIGNMENT // x.element_size()
    return x.new_zeros(numbers + offset).as_strided(shape, x.stride(), offset)


def _probe(a: Tensor, b: Tensor) -> tuple[Tensor, Tensor]:
    """Numbers whose sums depend on their order: small terms, some of which are lost beside large ones that cancel.

    Products of ordinary numbers would not do: rounded to bfloat16, most of them are equal in any order.
    """
    generator = torch.Generator(a.device).manual_seed(0)
    x, y = _like(a, len(a)), _like(b, len(b))
    for part in (x, y):
        for run in {i % len(part) for i in (0, 1, -2, -1)}:  # those that are compared
            part[run] = torch.randn(part.shape[1:], generator=generator, device=part.device)
    terms = a.shape[2]
    order = torch.randperm(terms, generator=generator, device=a.device)[: 2 * min(PAIRS, terms // 2)]
    signs = torch.ones(len(order), device=a.device)
    signs[::2] = -1
    x[:, :, order] = (LARGE * signs).to(x.dtype)
    y[:, order] = 1
    return x, y
