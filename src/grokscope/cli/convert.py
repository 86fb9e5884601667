"""`grokscope convert`: a `.pt` file as safetensors."""

from pathlib import Path
from typing import Annotated

import tyro

from grokscope.attach.checkpoints import convert as converted
from grokscope.attach.checkpoints import read_weights

__all__ = ["convert"]


def convert(
    file: Annotated[Path, tyro.conf.Positional, tyro.conf.arg(metavar="FILE.pt")],
    out: Path | None = None,
) -> None:
    """Write the tensors of somebody's .pt file as safetensors, which holds no code and can be loaded anywhere.

    A .pt file is a pickle, and a pickle can hold a program. Here it is read by a process of its own that accepts
    tensors and plain values only (weights_only); that lowers the risk and does not end it, so convert only what you
    trust. No other command opens a pickle.

    Example: grokscope convert grokked.pt --out grokked.safetensors

    Args:
        file: The .pt, .pth, .bin or .ckpt file.
        out: Where to write; FILE.safetensors if not given.
    """
    path = converted(file, out)
    print(f"wrote {path}: {len(read_weights(path))} tensors")
