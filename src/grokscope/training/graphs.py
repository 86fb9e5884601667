"""CUDA graphs: what was launched once is launched again, without the host."""

import contextlib
import gc
from collections.abc import Iterator
from typing import Any

import torch

__all__ = ["recorded"]


@contextlib.contextmanager
def recorded() -> Iterator[Any]:
    """A graph of what is launched inside; it has to have run before, so that nothing is compiled or loaded inside.

    Python must not free another graph meanwhile, which would break the recording: garbage is collected before.
    """
    gc.collect()
    was_enabled = gc.isenabled()
    gc.disable()
    graph = torch.cuda.CUDAGraph()
    try:
        with torch.cuda.graph(graph):
            yield graph
    finally:
        if was_enabled:
            gc.enable()
