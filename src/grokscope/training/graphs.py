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

    Python must not free another graph meanwhile, which would break the recording: garbage is collected before. What
    fails inside is raised, not that the recording could not be ended then.
    """
    gc.collect()
    was_enabled = gc.isenabled()
    gc.disable()
    graph, failure = torch.cuda.CUDAGraph(), None
    try:
        with torch.cuda.graph(graph):
            try:
                yield graph
            except BaseException as error:
                failure = error
                raise
    except Exception as error:
        raise failure or error from None
    finally:
        if was_enabled:
            gc.enable()
