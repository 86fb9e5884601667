"""Checkpoints that survive: whole or absent, checked by sha256, never a pickle.

A file is written as a whole, and its digest is added to the folder's manifest the same way. What is loaded is checked
against the manifest first.
"""

import contextlib
import hashlib
import json
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import safetensors.torch
import torch
from safetensors import SafetensorError
from torch import Tensor

from grokscope.files import DamagedError, named, write_atomically
from grokscope.model import Layout

__all__ = ["cut", "drop_tensors", "export_tensors", "load_tensors", "padded_row", "save_tensors"]

MANIFEST = "manifest.json"
FLAT = {"weights": "", "first": "first.", "second": "second.", "slow": "slow."}  # and the prefix of their tensors
SCALARS = ("step", "age", "weight_decay", "held_norm", "alive")


def save_tensors(path: Path, tensors: dict[str, Tensor]) -> None:
    """Write tensors as safetensors, and their digest into the folder's manifest.

    >>> from tempfile import TemporaryDirectory
    >>> with TemporaryDirectory() as folder:
    ...     save_tensors(Path(folder, "one.safetensors"), {"weight": torch.ones(2)})
    ...     load_tensors(Path(folder, "one.safetensors"))
    {'weight': tensor([1., 1.])}
    """
    content = _serialized(tensors)
    write_atomically(path, content)
    entry = {"sha256": hashlib.sha256(content).hexdigest(), "bytes": len(content)}
    try:
        manifest = _manifest(path.parent)
    except DamagedError:  # it vouches for nothing any more: what it listed counts as damaged until written again
        manifest = {}
    _write_manifest(path.parent, {**manifest, path.name: entry})


def export_tensors(path: Path, tensors: dict[str, Tensor]) -> None:
    """Write tensors as one safetensors file that stands alone.

    >>> from tempfile import TemporaryDirectory
    >>> with TemporaryDirectory() as folder:
    ...     export_tensors(Path(folder, "one.safetensors"), {"weight": torch.ones(2)})
    ...     safetensors.torch.load_file(Path(folder, "one.safetensors"))
    {'weight': tensor([1., 1.])}
    """
    write_atomically(path, _serialized(tensors))


def _serialized(tensors: dict[str, Tensor]) -> bytes:
    return safetensors.torch.save({name: tensor.detach().cpu().contiguous() for name, tensor in tensors.items()})


def drop_tensors(folder: Path, names: Iterable[str]) -> None:
    """Remove checkpoints, and then their entries in the manifest."""
    for name in names:
        (folder / name).unlink(missing_ok=True)
    with contextlib.suppress(DamagedError):
        _write_manifest(folder, _manifest(folder))


def _write_manifest(folder: Path, manifest: dict[str, Any]) -> None:
    present = {name: entry for name, entry in manifest.items() if (folder / name).exists()}
    write_atomically(folder / MANIFEST, json.dumps(present, indent=1, sort_keys=True).encode())


def load_tensors(path: Path) -> dict[str, Tensor]:
    """Read what `save_tensors` wrote, or say what is wrong with the file."""
    try:
        content = path.read_bytes()
    except OSError as error:
        raise DamagedError(f"the checkpoint {named(path)} cannot be read: {error.strerror}") from None
    expected = _manifest(path.parent).get(path.name)
    if not isinstance(expected, dict):
        raise DamagedError(f"the checkpoint {named(path)} is not in its folder's manifest")
    found, wanted = hashlib.sha256(content).hexdigest(), str(expected.get("sha256"))
    if found != wanted or expected.get("bytes") != len(content):
        size = f"{len(content):,} bytes, expected {expected.get('bytes')}"
        raise DamagedError(
            f"the checkpoint {named(path)} is damaged: its sha256 is {found[:12]}… of {size} with {wanted[:12]}…"
        )
    try:
        return safetensors.torch.load(content)
    except SafetensorError as error:
        raise DamagedError(f"{named(path)} is not a safetensors file: {error}") from None


def _manifest(folder: Path) -> dict[str, Any]:
    try:
        manifest = json.loads((folder / MANIFEST).read_bytes())
    except FileNotFoundError:
        return {}
    except (OSError, ValueError) as error:
        raise DamagedError(f"{named(folder / MANIFEST)} cannot be read: {error}") from None
    return manifest if isinstance(manifest, dict) else {}


def cut(row: dict[str, Tensor], layout: Layout, symbols: int) -> dict[str, Tensor]:
    """A run's row as named tensors without padding.

    `first.…` and `second.…` are Adam's moments; `slow.…`, Grokfast's average, is there only where a run has it.
    """
    found = {name: value.reshape(1) for name, value in row.items() if name not in FLAT}
    for name, prefix in FLAT.items():
        if name in row and row[name].numel():
            views = layout.views(row[name][None])
            found |= {f"{prefix}{each}": view[0][layout.real(each, symbols)] for each, view in views.items()}
    return found


def padded_row(tensors: dict[str, Tensor], layout: Layout, symbols: int) -> dict[str, Tensor]:
    """The inverse of `cut`, for a full state or weights alone; padding is exactly zero."""
    row: dict[str, Tensor] = {}
    example = tensors["embed.W_E"]
    for name, prefix in FLAT.items():
        if f"{prefix}embed.W_E" in tensors:
            flat = torch.zeros(1, layout.size, dtype=example.dtype)
            for parameter, view in layout.views(flat).items():
                view[0][layout.real(parameter, symbols)] = tensors[f"{prefix}{parameter}"]
            row[name] = flat[0]
    row.update({name: value[0] for name, value in tensors.items() if name in SCALARS})
    return row
