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

from grokscope.errors import shown
from grokscope.files import DamagedError, named, read_file, read_json, write_atomically
from grokscope.model import Layout, Sizes

__all__ = [
    "cut",
    "digest_weights",
    "drop_tensors",
    "export_tensors",
    "load_tensors",
    "padded_row",
    "read_manifest",
    "save_tensors",
]

MANIFEST = "manifest.json"
RUN = "run"  # the manifest's entry that names whose checkpoints they are; earlier versions wrote none
FLAT = {"weights": "", "first": "first.", "second": "second.", "slow": "slow."}  # and the prefix of their tensors
SCALARS = ("step", "age", "weight_decay", "held_norm", "alive")
VECTORS = ("anchors", "recent")  # written where they have entries


def save_tensors(path: Path, tensors: dict[str, Tensor], run: str = "") -> None:
    """Write tensors as safetensors, and their digest into the folder's manifest, which names the run they are of.

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
        manifest = read_manifest(path.parent, run)
    except DamagedError:  # it vouches for nothing any more: what it listed counts as damaged until written again
        manifest = {}
    _write_manifest(path.parent, {**manifest, path.name: entry} | ({RUN: run} if run else {}))


def export_tensors(path: Path, tensors: dict[str, Tensor]) -> None:
    """Write tensors as one safetensors file that stands alone.

    >>> from tempfile import TemporaryDirectory
    >>> with TemporaryDirectory() as folder:
    ...     export_tensors(Path(folder, "one.safetensors"), {"weight": torch.ones(2)})
    ...     safetensors.torch.load_file(Path(folder, "one.safetensors"))
    {'weight': tensor([1., 1.])}
    """
    write_atomically(path, _serialized(tensors))


def digest_weights(weights: dict[str, Tensor]) -> str:
    """SHA-256 of named weights: of each, in the order of the names, its name, type, shape and bytes.

    >>> one = {"weight": torch.ones(2)}
    >>> digest_weights(one) == digest_weights({"weight": torch.ones(2)}), len(digest_weights(one))
    (True, 64)
    """
    return hashlib.sha256(_serialized(dict(sorted(weights.items())))).hexdigest()


def _serialized(tensors: dict[str, Tensor]) -> bytes:
    return safetensors.torch.save({name: tensor.detach().cpu().contiguous() for name, tensor in tensors.items()})


def drop_tensors(folder: Path, names: Iterable[str]) -> None:
    """Remove checkpoints, and then their entries in the manifest.

    >>> from tempfile import TemporaryDirectory
    >>> with TemporaryDirectory() as folder:
    ...     save_tensors(Path(folder, "one.safetensors"), {"weight": torch.ones(2)})
    ...     drop_tensors(Path(folder), ["one.safetensors"])
    ...     read_manifest(Path(folder))
    {}
    """
    for name in names:
        (folder / name).unlink(missing_ok=True)
    with contextlib.suppress(DamagedError):
        _write_manifest(folder, read_manifest(folder))


def _write_manifest(folder: Path, manifest: dict[str, Any]) -> None:
    present = {name: entry for name, entry in manifest.items() if name == RUN or (folder / name).exists()}
    write_atomically(folder / MANIFEST, json.dumps(present, indent=1, sort_keys=True).encode())


def load_tensors(path: Path, run: str = "") -> dict[str, Tensor]:
    """Read what `save_tensors` wrote, of this run if one is given, or say what is wrong with the file.

    >>> from tempfile import TemporaryDirectory
    >>> with TemporaryDirectory() as folder:
    ...     save_tensors(Path(folder, "one.safetensors"), {"weight": torch.ones(2)})
    ...     load_tensors(Path(folder, "one.safetensors"))
    {'weight': tensor([1., 1.])}
    """
    expected = read_manifest(path.parent, run).get(path.name)
    if not isinstance(expected, dict) or type(size := expected.get("bytes")) is not int:
        raise DamagedError(f"the checkpoint {named(path)} is not in its folder's manifest")
    try:
        content = read_file(path, size)  # no more is read, and so allocated, than was written
    except FileNotFoundError:
        raise DamagedError(f"the checkpoint {named(path)} is missing") from None
    except DamagedError as error:
        raise DamagedError(f"the checkpoint is damaged: {error}") from None
    found, wanted = hashlib.sha256(content).hexdigest(), str(expected.get("sha256"))
    if found != wanted:
        raise DamagedError(
            f"the checkpoint {named(path)} is damaged: its sha256 is {found[:12]}… of {len(content):,} bytes, expected "
            f"{size:,} with {shown(wanted[:12])}"
        )
    try:
        return safetensors.torch.load(content)
    except (SafetensorError, ValueError, KeyError) as error:  # KeyError: of a kind of number that torch lacks
        raise DamagedError(f"{named(path)} is not a safetensors file: {shown(str(error))}") from None


def read_manifest(folder: Path, run: str = "") -> dict[str, Any]:
    """The digests of a folder's checkpoints, empty if there are none; a manifest of another run is rejected.

    >>> from tempfile import TemporaryDirectory
    >>> with TemporaryDirectory() as folder:
    ...     save_tensors(Path(folder, "one.safetensors"), {"weight": torch.ones(2)})
    ...     [*read_manifest(Path(folder))]
    ['one.safetensors']
    """
    path = folder / MANIFEST
    try:
        manifest = read_json(path, dict)
    except FileNotFoundError:
        return {}
    if run and manifest.get(RUN, run) != run:
        raise DamagedError(f"{named(path)} is the manifest of another run")
    return manifest


def cut(row: dict[str, Tensor], layout: Layout, sizes: Sizes) -> dict[str, Tensor]:
    """A run's row as named tensors without padding.

    `first.…` and `second.…` are Adam's moments; `slow.…`, Grokfast's average, is there only where a run has it.

    >>> from grokscope.model import Sizes, initial_weights, layout_of
    >>> from grokscope.specs import Architecture, Initialization
    >>> small = Architecture(layers=1, width=8, heads=1, mlp_width=16)
    >>> own, padded = Sizes(vocabulary=7, classes=6), Sizes(vocabulary=8, classes=8)
    >>> flat = initial_weights(small, Initialization(), own, padded, seeds=torch.tensor([0]))
    >>> cut({"weights": flat[0]}, layout_of(small, padded), own)["embed.W_E"].shape
    torch.Size([7, 8])
    """
    found = {name: value.reshape(1) for name, value in row.items() if name not in (*FLAT, *VECTORS)}
    found |= {name: row[name] for name in VECTORS if name in row and row[name].numel()}
    for name, prefix in FLAT.items():
        if name in row and row[name].numel():
            views = layout.views(row[name][None])
            found |= {f"{prefix}{each}": view[0][layout.real(each, sizes)] for each, view in views.items()}
    return found


def padded_row(tensors: dict[str, Tensor], layout: Layout, sizes: Sizes) -> dict[str, Tensor]:
    """The inverse of `cut`, for a full state or weights alone; padding is exactly zero.

    >>> from grokscope.model import Sizes, initial_weights, layout_of
    >>> from grokscope.specs import Architecture, Initialization
    >>> small = Architecture(layers=1, width=8, heads=1, mlp_width=16)
    >>> own, padded = Sizes(vocabulary=7, classes=6), Sizes(vocabulary=8, classes=8)
    >>> layout = layout_of(small, padded)
    >>> flat = initial_weights(small, Initialization(), own, padded, seeds=torch.tensor([0]))
    >>> tensors = cut({"weights": flat[0]}, layout, own)
    >>> bool((padded_row(tensors, layout, own)["weights"] == flat[0]).all())
    True
    """
    row: dict[str, Tensor] = {}
    try:
        example = tensors["unembed.W_U"]
        for name, prefix in FLAT.items():
            if f"{prefix}unembed.W_U" in tensors:
                flat = torch.zeros(1, layout.size, dtype=example.dtype)
                for parameter, view in layout.views(flat).items():
                    view[0][layout.real(parameter, sizes)] = tensors[f"{prefix}{parameter}"]
                row[name] = flat[0]
        row.update({name: value[0] for name, value in tensors.items() if name in SCALARS})
        row.update({name: value for name, value in tensors.items() if name in VECTORS})
    except (KeyError, RuntimeError, IndexError):
        raise DamagedError("a checkpoint does not hold the tensors of its run's architecture") from None
    return row
