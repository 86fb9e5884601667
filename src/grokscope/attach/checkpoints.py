"""Published weights into a model: safetensors only; a `.pt` file is converted first, by a process of its own."""

import os
import subprocess
import sys
import tempfile
from collections.abc import Callable, Mapping
from pathlib import Path

import safetensors.torch
from safetensors import SafetensorError
from torch import Tensor, nn

from grokscope.errors import InputError, did_you_mean, for_shell, plural, require, shown
from grokscope.files import named, read_given

__all__ = ["convert", "load_weights", "read_weights"]

Renaming = Mapping[str, str] | Callable[[str], str]
SAFE = ".safetensors"
PICKLES = (".pt", ".pth", ".bin", ".ckpt")
SECONDS = 600
LARGEST = 2**36  # bytes of weights that are still read


def read_weights(path: Path | str) -> dict[str, Tensor]:
    """The tensors of a safetensors file. A pickle is rejected, and never opened.

    >>> import torch
    >>> from grokscope.training.checkpoint import export_tensors
    >>> from tempfile import TemporaryDirectory
    >>> with TemporaryDirectory() as folder:
    ...     export_tensors(Path(folder, "one.safetensors"), {"weight": torch.ones(1, 1)})
    ...     read_weights(Path(folder, "one.safetensors"))
    {'weight': tensor([[1.]])}
    """
    path = Path(path)
    if path.suffix.lower() != SAFE:
        hint = f"; make one with: grokscope import {for_shell(path)}" if path.suffix.lower() in PICKLES else ""
        raise InputError(f"weights are read from {SAFE} files only, got {named(path)}{hint}")
    content = read_given(path, f"the weights {named(path)}", LARGEST)
    try:
        return safetensors.torch.load(content)
    except (SafetensorError, ValueError, KeyError) as error:  # KeyError: of a kind of number that torch lacks
        raise InputError(f"{named(path)} is not a safetensors file: {shown(str(error))}") from None


def load_weights(model: nn.Module, path: Path | str, rename: Renaming | None = None) -> None:
    """Load published weights into a model of one's own, renamed where names differ; all or nothing.

    `rename` maps the file's names to the model's: a dict for some of them, or a function for all. Every tensor of the
    model must come, in its shape; tensors of the file that are renamed to the empty text are left out.

    >>> import torch
    >>> from grokscope.training.checkpoint import export_tensors
    >>> from tempfile import TemporaryDirectory
    >>> model = nn.Linear(1, 1, bias=False)
    >>> with TemporaryDirectory() as folder:
    ...     export_tensors(Path(folder, "one.safetensors"), {"net.weight": torch.ones(1, 1)})
    ...     load_weights(model, Path(folder, "one.safetensors"), rename={"net.weight": "weight"})
    >>> model.weight.item()
    1.0
    """
    found = read_weights(path)
    called = rename if callable(rename) else lambda name: (rename or {}).get(name, name)
    given = {called(name): tensor for name, tensor in found.items() if called(name)}
    own = model.state_dict()
    for name, tensor in given.items():
        if name not in own:
            raise InputError(f"{type(model).__name__} has no tensor {shown(name)}{did_you_mean(name, own)}; see rename")
        require(
            tensor.shape == own[name].shape,
            f"{name} is {list(own[name].shape)} in the model and {list(tensor.shape)} in {named(Path(path))}",
        )
    # A tensor that the model has under two names, as tied embeddings, is stored under one of them.
    filled = {(own[name].data_ptr(), own[name].shape) for name in given if own[name].data_ptr()}
    missing = [name for name, w in own.items() if name not in given and (w.data_ptr(), w.shape) not in filled]
    if missing:
        lacking = plural(len(missing), "tensor")
        raise InputError(f"{named(Path(path))} lacks {lacking} of the model, such as {shown(missing[0])}")
    model.load_state_dict(given, strict=False)


def convert(source: Path | str, target: Path | str | None = None) -> Path:
    """A `.pt` file's tensors as safetensors, read by a separate process that lets only tensors be unpickled.

    Nested dictionaries become dotted names; lists and tuples too, by number. Anything that is not a tensor or a
    plain number is left out. A file that asks for far more memory than it has bytes is rejected. `weights_only` lowers
    the risk of a pickle and does not end it: convert files of people you trust.

    >>> from torch import eye, save
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     save({"fc.weight": eye(2)}, Path(folder, "mine.pt"))
    ...     convert(Path(folder, "mine.pt")).name
    'mine.safetensors'
    """
    source = Path(source)
    target = source.with_suffix(SAFE) if target is None else Path(target)
    require(source.suffix.lower() in PICKLES, f"import takes {', '.join(PICKLES)} files, got {named(source)}")
    require(target.suffix.lower() == SAFE, f"weights are written as a {SAFE} file, got {named(target)}")
    require(source.is_file(), f"there is no file {named(source)}")
    require(not target.exists(), f"{named(target)} exists already; nothing was overwritten")
    # The process runs in an empty folder, with nothing of ours in its environment but where Python finds packages.
    known = {name: os.environ[name] for name in ("PATH", "PYTHONPATH", "LD_LIBRARY_PATH", "HOME") if name in os.environ}
    command = [sys.executable, "-m", "grokscope.attach.unpickling", str(source.resolve()), str(target.resolve())]
    with tempfile.TemporaryDirectory() as empty:
        try:
            done = subprocess.run(
                command, cwd=empty, env=known, capture_output=True, text=True, check=False, timeout=SECONDS
            )
        except subprocess.TimeoutExpired:
            raise InputError(f"{named(source)} was not read within {SECONDS} seconds") from None
    if done.returncode != 0:
        # What a library writes when it fails, such as advice to load the file unsafely, is repeated to nobody.
        ours = [line for line in done.stderr.splitlines() if line.startswith("grokscope: ")]
        why = ours[-1].removeprefix("grokscope: ") if ours else f"reading it failed (status {done.returncode})"
        raise InputError(f"{named(source)} could not be converted: {why}")
    return target
