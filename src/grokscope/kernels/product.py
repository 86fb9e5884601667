"""Matrix products of a stack with the bits of a stack of two.

cuBLAS chooses a kernel by shape, by the number of matrices and by where they lie, and a kernel's sums are the same for
every matrix of the stack. A stack of one is computed as two, since alone it would get another kernel. That the choice
is the same for the size at hand is not promised by cuBLAS, and does not hold where the terms of a sum are no multiple
of a kernel's tile: then tiles of other sizes begin in other places. So it is tried before the first product of every
kind; where it does not hold, the stack is cut into parts for which it does.
"""

from collections.abc import Callable, Iterator

import torch
from torch import Tensor

__all__ = ["product"]

LARGE, PAIRS = 2.0**22, 4  # of a probe
ALIGNMENT = 256  # bytes

Places = tuple[int, ...]
"""Where two factors and a result begin, in bytes from the last multiple of ALIGNMENT."""

_FOUND: dict[tuple[object, ...], int] = {}


def product(a: Tensor, b: Tensor, out: Tensor | None = None) -> Tensor:
    """A b for each run, [runs, rows, columns]; `out` may have other strides and precision, and at least two runs."""
    runs = len(a)
    if runs == 1:
        both = out if out is None else out[:2]
        can_repeat = _known(_can_repeat, a, b, both)
        x, y = ((x.expand(2, -1, -1) if can_repeat else _copied(x, 2, _place(x))) for x in (a, b))
        return _multiply(x, y, both)[:1]
    result = None if out is None else out[:runs]
    if a.device.type != "cuda" or _known(_largest_part, a, b, result) == runs:
        return _multiply(a, b, result)
    if result is None:
        result = a.new_empty(runs, a.shape[1], b.shape[2])
    _in_parts(a, b, result)
    return result


def _in_parts(a: Tensor, b: Tensor, out: Tensor) -> None:
    """Multiply as many runs at once as have the bits of the first two; no run alone."""
    runs, first = len(a), tuple(_place(x) for x in (a, b, out))
    largest, start = _known(_largest_part, a, b, out, first), 0
    while start < runs:
        start = min(start, runs - 2)
        part = slice(start, start + max(2, min(largest, runs - start)))
        size = _known(_largest_part, a[part], b[part], out[part], first)
        if size == 0:  # where these two lie they get another kernel: they are multiplied where the first two would lie
            two = slice(start, start + 2)
            x, y, to = (_copied(x[two], 2, place) for x, place in zip((a, b, out), first, strict=True))
            out[two] = _multiply(x, y, to)
        else:
            part = slice(start, start + size)
            _multiply(a[part], b[part], out[part])
        start += max(2, size)


def _multiply(a: Tensor, b: Tensor, out: Tensor | None) -> Tensor:
    if out is None:
        return torch.bmm(a, b)
    if out.dtype != a.dtype:
        return torch.bmm(a, b, out_dtype=out.dtype, out=out)
    return torch.bmm(a, b, out=out)


def _known(
    find: Callable[[Tensor, Tensor, Tensor | None, Places], int],
    a: Tensor,
    b: Tensor,
    out: Tensor | None,
    first: Places | None = None,
) -> int:
    """What is found for all products by which cuBLAS cannot tell them from this one."""
    given = [x for x in (a, b, out) if x is not None]
    own = tuple(map(_place, given))
    first = first or own
    if a.device.type != "cuda" or (find is _largest_part and len(a) == 2 and first == own):
        return len(a)
    kinds = tuple((x.shape, x.stride(), x.dtype) for x in given)
    key = (find, a.device, kinds, own, first, torch.get_float32_matmul_precision())
    if key not in _FOUND:
        found = [find(x, y, None if out is None else _like(out, len(out), own[2]), first) for x, y in _probes(a, b)]
        _FOUND[key] = min(found)
    return _FOUND[key]


def _can_repeat(a: Tensor, b: Tensor, out: Tensor | None, first: Places) -> int:
    """Whether one matrix with a stride of 0 is multiplied as two in their own places are: 0 or 1."""
    repeated = _multiply(a.expand(2, -1, -1), b.expand(2, -1, -1), out).clone()
    return int(torch.equal(repeated, _multiply(_copied(a, 2, first[0]), _copied(b, 2, first[1]), out)))


def _largest_part(a: Tensor, b: Tensor, out: Tensor | None, first: Places) -> int:
    """The largest stack, of at most this size, whose products have the bits of two in the first places; 0 for none."""
    size = len(a)
    while size > 2 and not _is_equal(a, b, out, first, size):
        size = max(2, size // 2)
    return size if size > 2 or _is_equal(a, b, out, first, 2) else 0


def _is_equal(a: Tensor, b: Tensor, out: Tensor | None, first: Places, size: int) -> bool:
    """Whether the first two and the last two of a stack of this size have the bits that they have as two."""
    found = _multiply(a[:size], b[:size], None if out is None else out[:size])
    for end in (slice(0, 2), slice(size - 2, size)):
        whole = found[end].clone()
        x, y = _copied(a[end], 2, first[0]), _copied(b[end], 2, first[1])
        to = None if out is None else _like(out, 2, first[2])
        if not torch.equal(whole, _multiply(x, y, to)):
            return False
    return True


def _place(x: Tensor) -> int:
    return x.data_ptr() % ALIGNMENT


def _copied(x: Tensor, runs: int, place: int) -> Tensor:
    """Copies of a matrix, or of as many, at the distance at which a stack's matrices lie."""
    copies = _like(x, runs, place)
    copies[:] = x
    return copies


def _like(x: Tensor, runs: int, place: int) -> Tensor:
    """Zeros for so many runs with the strides of another tensor, and a place by which cuBLAS chooses."""
    shape = (runs, *x.shape[1:])
    numbers = 1 + sum((length - 1) * stride for length, stride in zip(shape, x.stride(), strict=True))
    offset = place // x.element_size()
    return x.new_zeros(numbers + offset).as_strided(shape, x.stride(), offset)


def _probes(a: Tensor, b: Tensor) -> Iterator[tuple[Tensor, Tensor]]:
    """Numbers whose sums depend on the order of their terms.

    Ordinary ones tell how terms are grouped. Rounded to bfloat16 most of their sums are equal in any order, so there
    are terms that cancel exactly, of whose sums rounding alone is left, and small terms beside large ones that cancel.
    """
    for kind in ("ordinary", "cancelling", "large"):
        generator = torch.Generator(a.device).manual_seed(0)
        x, y = (_like(factor, len(factor), _place(factor)) for factor in (a, b))
        for part in (x, y):
            for run in {i % len(part) for i in range(-2, 2)}:  # only the first, and the ends of what is compared,
                part[run] = torch.randn(part.shape[1:], generator=generator, device=part.device)
        x[2:], y[2:] = x[:1].clone(), y[:1].clone()  # and every other run is the first one again
        terms = a.shape[2]
        order = torch.randperm(terms, generator=generator, device=a.device)
        half = terms // 2
        if kind == "cancelling":
            x[:, :, order[half : 2 * half]] = -x[:, :, order[:half]]
            y[:, order[half : 2 * half]] = y[:, order[:half]]
            x[:, :, order[2 * half :]] = 0
        if kind == "large":
            chosen = order[: 2 * min(PAIRS, half)]
            signs = torch.ones(len(chosen), device=a.device)
            signs[::2] = -1
            x[:, :, chosen] = (LARGE * signs).to(x.dtype)
            y[:, chosen] = 1
        yield x, y
