"""The only place where a pickle is opened: a process of its own, asked for by `grokscope import`, tensors only."""

import re
import resource
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from grokscope.errors import InputError, require, shown
from grokscope.training.checkpoint import export_tensors

__all__ = ["main", "tensors_in"]

BAD_INPUT = 2
DEPTH = 20
RESERVED = "__metadata__"
GLOBAL = re.compile(r"GLOBAL ([A-Za-z_][A-Za-z0-9_.]{0,99})")  # as PyTorch names what it would not call
TIMES = 8  # tensors that share memory in the file are written apart
ALLOWED = 2**28  # bytes of tensors that any file may hold
MACHINERY = 2**28  # bytes that PyTorch takes for itself when it reads


def tensors_in(value: Any, name: str = "", depth: int = 0) -> Iterator[tuple[str, Tensor]]:
    """Every tensor and number inside, by its dotted name.

    >>> [name for name, _ in tensors_in({"model": {"w": torch.ones(1)}, "epoch": 3, "note": "text"})]
    ['model.w', 'epoch']
    """
    require(depth <= DEPTH, f"more than {DEPTH} dictionaries lie within each other")
    if isinstance(value, Tensor):
        yield name or "tensor", value
    elif isinstance(value, bool | int | float):
        yield name or "number", torch.tensor(value)
    elif isinstance(value, dict):
        for key, inner in value.items():
            yield from tensors_in(inner, f"{name}.{key}" if name else str(key), depth + 1)
    elif isinstance(value, list | tuple):
        for i, inner in enumerate(value):
            yield from tensors_in(inner, f"{name}.{i}" if name else str(i), depth + 1)


def _limit_memory(allowance: int) -> None:
    """Let this process allocate so many bytes more; where the system has no such limit, the file is read without."""
    try:
        used = int(Path("/proc/self/statm").read_text().split()[5]) * resource.getpagesize()  # data and stack
        _, hard = resource.getrlimit(resource.RLIMIT_DATA)
        limit = used + allowance if hard == resource.RLIM_INFINITY else min(used + allowance, hard)
        resource.setrlimit(resource.RLIMIT_DATA, (limit, hard))
    except (OSError, ValueError, IndexError):
        return


def _reason(error: Exception) -> str:
    """Why a file cannot be read, in our words: a library's advise how to read it unsafely."""
    text = str(error)
    if isinstance(error, MemoryError) or "memory" in text:
        return "it asks for far more memory than it has bytes"
    if found := GLOBAL.search(text):
        return f"it holds more than tensors: it asks for {shown(found[1])}"
    return "it holds more than tensors, or is damaged"


def main(source: Path, target: Path) -> None:
    """Read with `weights_only`, write as safetensors."""
    allowance = ALLOWED + TIMES * source.stat().st_size
    _limit_memory(MACHINERY + 2 * allowance)  # a copy as it is read, and one as it is written
    try:
        content = torch.load(source, map_location="cpu", weights_only=True)
    except Exception as error:  # a pickle fails in any way in which Python can
        raise InputError(_reason(error)) from None
    found: dict[str, Tensor] = {}
    claimed = 0
    for name, tensor in tensors_in(content):
        claimed += tensor.numel() * tensor.element_size()
        rule = f"its tensors may have {allowance:,} bytes in all, by the size of the file"
        require(claimed <= allowance, f"{rule}, and they claim at least {claimed:,}")
        require(name != RESERVED, f"the name {shown(name)} is safetensors' own")
        require(name not in found, f"the name {shown(name)} would be that of two tensors")
        require(tensor.layout == torch.strided, f"{shown(name)} is not a dense tensor ({tensor.layout})")
        found[name] = tensor.detach().clone()  # those that share memory are written apart: safetensors has no sharing
    require(found, "it holds no tensors")
    export_tensors(target, found)


if __name__ == "__main__":
    try:
        main(Path(sys.argv[1]), Path(sys.argv[2]))
    except InputError as error:
        print(f"grokscope: {error}", file=sys.stderr)
        sys.exit(BAD_INPUT)
