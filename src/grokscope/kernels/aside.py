"""A second stream for what nothing waits for soon: a few runs do not fill the device with one kernel at a time."""

import contextlib
from collections.abc import Iterator

import torch
from torch import Tensor

__all__ = ["SMALL_STACK", "Aside"]

SMALL_STACK = 16  # runs


class Aside:
    """Work beside the current stream; in order where there are many runs, or no CUDA."""

    def __init__(self, device: torch.device, runs: int) -> None:
        is_used = device.type == "cuda" and runs <= SMALL_STACK
        self.stream = torch.cuda.Stream(device) if is_used else None
        self.held: list[Tensor] = []
        self.is_pending = False

    @contextlib.contextmanager
    def __call__(self, *read: Tensor) -> Iterator[None]:
        """Launch what is inside after all that was launched so far; the memory that it reads is kept until `join`."""
        if self.stream is None:
            yield
            return
        self.stream.wait_stream(torch.cuda.current_stream())
        self.held += read
        self.is_pending = True
        with torch.cuda.stream(self.stream):
            yield

    def join(self) -> None:
        """Let what is launched from now on wait for it."""
        if self.stream is not None and self.is_pending:  # a graph must not wait for a stream that is not part of it
            torch.cuda.current_stream().wait_stream(self.stream)
            self.held.clear()
            self.is_pending = False
