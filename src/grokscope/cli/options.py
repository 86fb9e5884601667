"""Arguments and options that several commands take, each declared once with its meaning.

An option that is not given is empty or None, never its default: so a command knows what was given.
"""

from collections.abc import Mapping
from dataclasses import dataclass, fields
from pathlib import Path
from typing import Annotated, Any, Literal

import tyro

from grokscope.errors import InputError
from grokscope.runs import Keep
from grokscope.specs import Architecture, Initialization, RunSpec, Training

__all__ = [
    "Device",
    "ExecutorOptions",
    "File",
    "Flag",
    "Folder",
    "Force",
    "HardwareOptions",
    "JsonFlag",
    "Place",
    "Precision",
    "RunName",
    "RunOptions",
    "StorageOptions",
    "Track",
    "TrainingOptions",
    "Whole",
    "given",
    "reject",
]

Device = Literal["auto", "cpu", "cuda", "mps"]
Precision = Literal["float32", "tf32", "bf16"]
Flag = Annotated[bool, tyro.conf.FlagCreatePairsOff, tyro.conf.arg(help_behavior_hint="")]
JsonFlag = Annotated[
    bool,
    tyro.conf.FlagCreatePairsOff,
    tyro.conf.arg(name="json", help="Print JSON.", help_behavior_hint=""),
]
Force = Annotated[
    bool,
    tyro.conf.FlagCreatePairsOff,
    tyro.conf.arg(help="Replace the file if it exists already.", help_behavior_hint=""),
]
Folder = Annotated[Path, tyro.conf.Positional, tyro.conf.arg(metavar="DIR", help="A folder of runs.")]
Place = Annotated[
    str, tyro.conf.Positional, tyro.conf.arg(metavar="DIR", help="A folder of runs, or a remote address.")
]
RunName = Annotated[
    str,
    tyro.conf.Positional,
    tyro.conf.arg(
        metavar="RUN",
        help="The run's name, its hash, or the beginning of either; add_mod97_s0:weight_decay=2 tells runs apart.",
    ),
]
File = Annotated[Path | None, tyro.conf.arg(metavar="FILE", help_behavior_hint="")]
Whole = Annotated[int | None, tyro.conf.arg(metavar="INT", help_behavior_hint="")]
Track = Annotated[
    tuple[Literal["wandb", "tensorboard", "trackio"], ...],
    tyro.conf.arg(
        metavar="{wandb,tensorboard,trackio} ...",
        help="Copy the logs to these trackers while training. A tracker that fails causes a warning and does not stop "
        "training.",
        help_behavior_hint="",
    ),
]


def _several(usual: object, metavar: str = "FLOAT") -> Any:
    """How an option of a spec is shown: several values may follow, and the default is named."""
    return tyro.conf.arg(metavar=f"{metavar} ...", help_behavior_hint=f"(default: {usual})")


def _inherited(usual: object, metavar: str = "FLOAT") -> Any:
    """An option of training, whose default in `grokscope fork` is the parent's value."""
    return _several(f"{usual}; fork: the parent's", metavar)


@dataclass(frozen=True)
class TrainingOptions:
    """Several values of an option give a fork for each combination.

    An option that is not given keeps the parent's value.
    """

    steps: Annotated[tuple[int, ...], _inherited(8000, "INT")] = ()
    """Optimiser steps in all; those of a fork count from the first step of its parent."""
    weight_decay: Annotated[tuple[float, ...], _inherited(Training.weight_decay)] = ()
    """Weight decay λ."""
    learning_rate: Annotated[tuple[float, ...], _inherited(Training.learning_rate)] = ()
    """Learning rate η."""
    batch_size: Annotated[tuple[int, ...], _inherited(Training.batch_size, "INT")] = ()
    """Rows per step; all training rows where these are fewer."""
    dropout: Annotated[tuple[float, ...], _inherited(Training.dropout)] = ()
    """Dropout rate on the attention and MLP outputs."""
    warmup_steps: Annotated[tuple[int, ...], _inherited(Training.warmup_steps, "INT")] = ()
    """Steps over which the learning rate rises from 0."""
    gradient: Annotated[
        tuple[Literal["plain", "grokfast", "orthogonal", "grokfast_window"], ...],
        _inherited(Training.gradient, "{plain,grokfast,orthogonal,grokfast_window}"),
    ] = ()
    """Gradient passed to the optimiser: unmodified, filtered by Grokfast, or its part orthogonal to the weights."""
    optimizer: Annotated[
        tuple[Literal["adamw", "muon", "adam"], ...], _inherited(Training.optimizer, "{adamw,muon,adam}")
    ] = ()
    """What moves the weight matrices: AdamW, or Muon (orthogonalized momentum); AdamW moves all other parameters."""


@dataclass(frozen=True)
class RunOptions(TrainingOptions):
    """Several values of an option give a run for each combination.

    An option that is not given takes its value from --spec, or else its default.
    """

    train_fraction: Annotated[tuple[float, ...], _several(RunSpec.train_fraction)] = ()
    """Share of the rows that is trained on."""
    loss: Annotated[
        tuple[Literal["cross_entropy", "mse", "stablemax"], ...],
        _several(Training.loss, "{cross_entropy,mse,stablemax}"),
    ] = ()
    """What is minimised; real answers need mse."""
    kind: Annotated[tuple[Literal["transformer", "mlp"], ...], _several(Architecture.kind, "{transformer,mlp}")] = ()
    """The model; vectors need an mlp."""
    activation: Annotated[
        tuple[Literal["gelu", "relu", "square"], ...], _several(Architecture.activation, "{gelu,relu,square}")
    ] = ()
    """The neurons' nonlinearity; square is x², of quadratic networks."""
    layers: Annotated[tuple[int, ...], _several(Architecture.layers, "INT")] = ()
    """Blocks of attention and MLP, or hidden layers of an mlp, at most 8; an mlp with 0 is linear."""
    width: Annotated[tuple[int, ...], _several(Architecture.width, "INT")] = ()
    """Width of the residual stream; of an mlp, that of its embeddings."""
    heads: Annotated[tuple[int, ...], _several(Architecture.heads, "INT")] = ()
    """Attention heads of each block."""
    mlp_width: Annotated[tuple[int, ...], _several(Architecture.mlp_width, "INT")] = ()
    """Hidden neurons of each MLP or layer."""
    biases: Annotated[tuple[bool, ...], _several(Architecture.biases, "{True,False}")] = ()
    """Whether linear maps have biases."""
    embedded: Annotated[tuple[bool, ...], _several(Architecture.embedded, "{True,False}")] = ()
    """Whether an mlp reads learnt embeddings of its tokens; else it reads one-hot vectors."""
    hidden_norm: Annotated[tuple[bool, ...], _several(Architecture.hidden_norm, "{True,False}")] = ()
    """Whether an mlp has a LayerNorm before every activation."""
    scale: Annotated[
        tuple[float, ...],
        tyro.conf.arg(
            name="initial-scale", metavar="FLOAT ...", help_behavior_hint=f"(default: {Initialization.scale})"
        ),
    ] = ()
    """What all initial weights are multiplied by; large ones delay grokking."""
    precision: Annotated[tuple[Precision, ...], _several(RunSpec.precision, "{float32,tf32,bf16}")] = ()
    """Arithmetic: float32 is the reference; tf32 and bf16 are faster."""


@dataclass(frozen=True)
class StorageOptions:
    """What is stored of a run, and when it ends."""

    keep: Annotated[
        Keep | None,
        tyro.conf.arg(
            metavar="{weights,state,forks,none}",
            help="weights: weights only; state: full training state at every checkpoint; forks: full state at "
            "--fork-points only; none: no checkpoints.",
            help_behavior_hint="(default: weights)",
        ),
    ] = None
    measures: Annotated[tuple[str, ...], tyro.conf.arg(metavar="NAME ...", help_behavior_hint="")] = ()
    """Measures taken at every checkpoint, as `grokscope measure` lists them."""
    stop_after_grokking: Annotated[
        int | None,
        tyro.conf.arg(
            metavar="INT",
            help="End a run this many steps after it groks. Later FSD crossings are then missed, which biases leads "
            "(grok step − crossing step).",
            help_behavior_hint="",
        ),
    ] = None


@dataclass(frozen=True)
class HardwareOptions:
    """Where each run is trained."""

    device: Device = "auto"
    """auto is CUDA where there is one, otherwise one worker per core; mps has not been tested on hardware."""
    deterministic: Flag = False
    """Raise an error for operations that are not deterministic."""


@dataclass(frozen=True)
class ExecutorOptions:
    """Where the workers run."""

    executor: Literal["local", "slurm", "ray"] = "local"
    """local: processes on this machine; slurm: a job array; ray: tasks on a Ray cluster."""
    cluster: Annotated[str | None, tyro.conf.arg(metavar="ADDRESS", help_behavior_hint="")] = None
    """Address of the Ray cluster."""
    partition: Annotated[str | None, tyro.conf.arg(metavar="NAME", help_behavior_hint="")] = None
    """Partition of the SLURM cluster."""
    runs_per_shard: Whole = None
    """Runs that one job or task trains at most; as many as fit if not given."""
    memory_gib: Annotated[float | None, tyro.conf.arg(metavar="GIB", help_behavior_hint="")] = None
    """Memory of the cluster's accelerators, if this machine has none like them."""
    retries: int = 3
    """How often a worker or shard that dies is started again."""

    @property
    def memory(self) -> int | None:
        """An accelerator's memory in bytes."""
        return None if self.memory_gib is None else int(self.memory_gib * 2**30)

    def check(self) -> None:
        """Reject an option that would have no effect, negative retries, and a memory that is no size."""
        users = {"cluster": "ray", "partition": "slurm", "runs_per_shard": "slurm ray", "memory_gib": "slurm ray"}
        problems: dict[str, object] = {
            f"--{name.replace('_', '-')} has no effect with --executor {self.executor}; use --executor "
            f"{executors.replace(' ', ' or --executor ')}": name in given(self) and self.executor not in executors
            for name, executors in users.items()
        }
        problems[f"--retries must be at least 0, got {self.retries}"] = self.retries < 0
        size = f"--memory-gib must be a number of GiB above 0, got {self.memory_gib}"
        reject(problems | {size: self.memory_gib is not None and not 0 < self.memory_gib < 2**20})


def reject(problems: Mapping[str, object]) -> None:
    """Reject a command line for the first of these reasons that holds."""
    for sentence, holds in problems.items():
        if holds:
            raise InputError(sentence)


def given(options: Any) -> dict[str, Any]:
    """The options of a group that were given, by name."""
    values = ((field.name, getattr(options, field.name)) for field in fields(options))
    return {name: value for name, value in values if value not in ((), None)}
