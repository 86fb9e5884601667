"""How a stack is cut where cuBLAS would give it other bits, and what the choice is tried with."""

from itertools import pairwise

import pytest
import torch
from torch import Tensor

from grokscope.kernels import product as module
from grokscope.kernels.product import product


def residue_first(a: Tensor, b: Tensor, tile: int) -> Tensor:
    """The sum as CUTLASS orders it: the terms that fill no tile come first, and a tile's are added eight at a time."""
    terms = a.shape[2]
    bounds = [0, *range(terms % tile or tile, terms + 1, tile)]
    total = a.new_zeros(len(a), a.shape[1], b.shape[2])
    for tile_start, tile_end in pairwise(bounds):
        for start in range(tile_start, tile_end, 8):
            some = slice(start, min(start + 8, tile_end))
            total = total + (a[:, :, some].double() @ b[:, some].double()).float()
    return total


@pytest.mark.parametrize("terms", [273, 211, 633])
def test_a_probe_tells_tiles_apart_that_begin_in_other_places(terms: int) -> None:
    a, b = torch.empty(4, 8, terms), torch.empty(4, terms, 8)
    found = [torch.equal(residue_first(x, y, 16), residue_first(x, y, 32)) for x, y in module._probes(a, b)]
    assert not all(found)
    whole = terms // 32 * 32
    even = module._probes(a[..., :whole].contiguous(), b[:, :whole].contiguous())
    assert all(torch.equal(residue_first(x, y, 16), residue_first(x, y, 32)) for x, y in even)


def test_sums_of_a_probe_survive_rounding_to_bfloat16() -> None:
    a, b = torch.empty(4, 8, 128, dtype=torch.bfloat16), torch.empty(4, 128, 8, dtype=torch.bfloat16)
    reverse = torch.arange(127, -1, -1)
    kinds = []
    for x, y in module._probes(a, b):
        x, y = x.float(), y.float()
        forth, back = (residue_first(x[..., order], y[:, order], 32) for order in (torch.arange(128), reverse))
        kinds.append((forth.bfloat16() != back.bfloat16()).float().mean().item())
    assert max(kinds) > 0.9  # of what cancels exactly, rounding alone is left


@pytest.mark.parametrize("runs", [3, 4, 5, 8, 13])
@pytest.mark.parametrize("largest", [2, 3, 4])
@pytest.mark.parametrize("is_moved", [False, True])
def test_parts_are_the_whole(runs: int, largest: int, is_moved: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    sizes = []

    def known(find: object, a: Tensor, b: Tensor, out: Tensor, first: object = None) -> int:
        return 0 if is_moved and a.storage_offset() else min(largest, len(a))

    def multiply(a: Tensor, b: Tensor, out: Tensor | None) -> Tensor:
        sizes.append(len(a))
        return torch.bmm(a, b) if out is None else torch.bmm(a, b, out=out)

    monkeypatch.setattr(module, "_known", known)
    monkeypatch.setattr(module, "_multiply", multiply)
    a, b = torch.randn(runs, 5, 6), torch.randn(runs, 6, 7)
    out = torch.full((runs, 5, 7), torch.nan)
    module._in_parts(a, b, out)
    assert torch.allclose(out, a @ b)
    assert min(sizes) >= 2
    assert max(sizes) <= largest


def test_a_run_alone_is_multiplied_as_two() -> None:
    a, b = torch.randn(1, 5, 6), torch.randn(1, 6, 7)
    assert torch.allclose(product(a, b), a @ b)
