"""Path patching: what one attention head tells one later part of the model.

For a pair of inputs, x (clean) and x' (corrupt), let Δ = (z'_h − z_h) W_O^h be what sender head h would write into
the residual stream on x' instead of x, at every position. On x, every receiver reads the stream as it is plus Δ, and
nobody else does:

1. x and x' are run as they are; Δ comes from the sender's `hook_z` and its rows of W_O.
2. For each stage that has receivers, in the order of the forward pass (a block's attention, its MLP, the logits), x is
   run with Δ added to the stream where the stage reads it, and with the receivers found so far replaced. The
   receivers' own reading is kept: q, k or v of a head, the MLP's `hook_pre`, the logits.
3. x is run with all receivers' readings replaced.

With one receiver that is path patching as Wang et al. (2022) define it with every other component frozen: up to the
receiver nothing has changed but Δ, so all else has its clean value, and after it everything is computed anew. With
every receiver at once it is activation patching of the head.
"""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Literal

import torch
from torch import Tensor

from grokscope.activations import Subject
from grokscope.activations.subject import PAIRS_AT_ONCE
from grokscope.errors import InputError, shown
from grokscope.model import Taps, forward
from grokscope.randomness import uniform
from grokscope.shapes import Float, Int
from grokscope.specs import Architecture
from grokscope.tasks import Task

__all__ = [
    "Head",
    "PatchEffect",
    "Receiver",
    "drawn_pairs",
    "head_patching",
    "path_patching",
    "receivers_of",
]

Edits = dict[str, Callable[[Tensor], Tensor]]


@dataclass(frozen=True)
class Head:
    """An attention head that sends."""

    block: int
    """Its block."""
    index: int
    """Its number within the block."""


@dataclass(frozen=True)
class Receiver:
    """What reads the residual stream: a head's queries, keys or values, an MLP, or the logits."""

    part: Literal["q", "k", "v", "mlp", "logits"]
    """What it is."""
    block: int = 0
    """Its block; the logits have none."""
    head: int = 0
    """Its head, for q, k and v."""


@dataclass(frozen=True)
class PatchEffect:
    """Logit differences d = logit(answer of x) − logit(answer of x'), for every pair of inputs."""

    clean: Float[Tensor, "runs pairs"]
    """d on x."""
    corrupt: Float[Tensor, "runs pairs"]
    """d on x'."""
    patched: Float[Tensor, "runs pairs"]
    """d on x with the patch."""

    @property
    def effect(self) -> Float[Tensor, "runs pairs"]:
        """Change of d, patched − clean: negative where the path carries what speaks for the answer of x."""
        return self.patched - self.clean

    @property
    def share(self) -> Float[Tensor, " runs"]:
        """Mean effect over the mean of d corrupt − d clean: 0 if the path carries nothing, 1 if it carries all."""
        return self.effect.mean(dim=-1) / (self.corrupt - self.clean).mean(dim=-1)


def receivers_of(architecture: Architecture, sender: Head) -> tuple[Receiver, ...]:
    """All that can read a head's output directly: its block's MLP, every later head and MLP, and the logits.

    >>> receivers_of(Architecture(layers=1), Head(0, 0))
    (Receiver(part='mlp', block=0, head=0), Receiver(part='logits', block=0, head=0))
    """
    found = []
    for block in range(sender.block, architecture.layers):
        if block > sender.block:
            found += [Receiver(part, block, head) for head in range(architecture.heads) for part in ("q", "k", "v")]
        if architecture.mlp != "dropped":
            found.append(Receiver("mlp", block))
    return (*found, Receiver("logits"))


def drawn_pairs(task: Task, count: int, seed: int) -> tuple[Int[Tensor, " pairs"], Int[Tensor, " pairs"]]:
    """Rows of `task.inputs`: x drawn uniformly, x' uniformly among the inputs with another answer."""
    answers = torch.tensor(task.answers)
    counts = torch.bincount(answers)
    if counts.max() == len(answers):
        raise InputError(f"all inputs of {task.name} have the same answer: there is none to patch from")
    first, second = uniform(torch.tensor(seed), "null", torch.tensor(1), 2 * count).view(2, -1)
    clean = (first * len(answers)).long()
    # Sorted by answer, the inputs with x's own stand together and are stepped over.
    own = answers[clean]
    start, size = (counts.cumsum(0) - counts)[own], counts[own]
    place = (second * (len(answers) - size)).long()
    return clean, answers.argsort(stable=True)[place + size * (place >= start)]


def path_patching(
    subject: Subject,
    clean: Int[Tensor, " clean"],
    corrupt: Int[Tensor, " corrupt"],
    sender: Head,
    receivers: Receiver | Iterable[Receiver],
) -> PatchEffect:
    """The effect on x of what the receivers would read if the sender had seen x'; inputs are rows of `task.inputs`."""
    wanted = (receivers,) if isinstance(receivers, Receiver) else tuple(receivers)
    _check(subject.architecture, sender, wanted)

    def patch(tokens: Tensor, written: Tensor, z: Tensor) -> Tensor:
        edits: Edits = {}
        for stage in sorted({_stage(subject.architecture, receiver) for receiver in wanted}):
            own = [receiver for receiver in wanted if _stage(subject.architecture, receiver) == stage]
            stream = {_stream(subject.architecture, own[0]): lambda x: x + written}
            heads: dict[str, list[int]] = {}
            for receiver in own:
                heads.setdefault(_reading(subject.architecture, receiver), []).append(receiver.head)
            seen = _run(subject, tokens, list(heads), edits | stream)
            edits |= {site: _replacement(site, seen[site], heads[site]) for site in heads}
        return _run(subject, tokens, ["logits"], edits)["logits"]

    return _effects(subject, clean, corrupt, sender, patch)


def head_patching(
    subject: Subject, clean: Int[Tensor, " clean"], corrupt: Int[Tensor, " corrupt"], sender: Head
) -> PatchEffect:
    """Activation patching: the effect on x of the head's output on x', read by everyone."""
    _check(subject.architecture, sender, ())
    site = _z(sender)

    def patch(tokens: Tensor, written: Tensor, z: Tensor) -> Tensor:
        return _run(subject, tokens, ["logits"], {site: lambda value: _with_heads(value, z, [sender.index])})["logits"]

    return _effects(subject, clean, corrupt, sender, patch)


def _effects(
    subject: Subject, clean: Tensor, corrupt: Tensor, sender: Head, patch: Callable[[Tensor, Tensor, Tensor], Tensor]
) -> PatchEffect:
    """Logit differences before and after a patch, made of x's tokens, Δ and the z of x'; some pairs at once."""
    if len(clean) != len(corrupt) or not len(clean):
        raise InputError(f"inputs are patched in pairs, got {len(clean)} clean and {len(corrupt)} corrupt ones")
    tokens, site = torch.tensor(subject.task.tokens, device=subject.device), _z(sender)
    size = max(256, PAIRS_AT_ONCE[subject.device.type] // len(subject))
    parts = []
    for start in range(0, len(clean), size):
        x, other = (rows[start : start + size].to(subject.device) for rows in (clean, corrupt))
        before, after = (_run(subject, tokens[rows].T, [site, "logits"]) for rows in (x, other))
        patched = patch(tokens[x].T, _written(subject, sender, after[site] - before[site]), after[site])
        answers = subject.answers[torch.stack([x, other], dim=-1)].expand(len(subject), -1, -1)
        chosen = [logits.gather(-1, answers) for logits in (before["logits"], after["logits"], patched)]
        parts.append(torch.stack([both[..., 0] - both[..., 1] for both in chosen]))
    return PatchEffect(*torch.cat(parts, dim=-1))


def _run(subject: Subject, tokens: Tensor, sites: Sequence[str], edits: Edits | None = None) -> dict[str, Tensor]:
    """Sites' values for some inputs, tokens [3, inputs]."""
    taps = Taps(read=frozenset(sites), edits=edits or {})
    classes = torch.full((len(subject),), subject.task.classes, device=subject.device)
    with torch.no_grad():
        stacked = tokens.expand(len(subject), -1, -1)
        forward(subject.weights, subject.architecture, stacked, classes=classes, taps=taps)
    return taps.values


def _written(subject: Subject, sender: Head, z: Tensor) -> Float[Tensor, "runs 3 pairs width"]:
    """What a head writes into the stream: z_h W_O^h."""
    width = subject.architecture.head_width
    rows = slice(sender.index * width, (sender.index + 1) * width)
    return torch.einsum(
        "rpie,red->rpid", z[..., sender.index, :], subject.weights[f"blocks.{sender.block}.attn.W_O"][:, rows]
    )


def _replacement(site: str, seen: Tensor, heads: Sequence[int]) -> Callable[[Tensor], Tensor]:
    """The edit that gives a site what was seen there: some heads of it where it has heads, else all of it."""
    return lambda value: _with_heads(value, seen, heads) if ".attn." in site else seen


def _with_heads(value: Tensor, other: Tensor, heads: Sequence[int]) -> Tensor:
    """A value [runs, positions, inputs, heads, …] with some heads from another."""
    is_other = torch.zeros(value.shape[-2], 1, dtype=torch.bool, device=value.device)
    is_other[list(heads)] = True
    return torch.where(is_other, other, value)


# Names of what a receiver reads, in the order of the forward pass.


def _z(head: Head) -> str:
    return f"blocks.{head.block}.attn.hook_z"


def _stage(architecture: Architecture, receiver: Receiver) -> int:
    if receiver.part == "logits":
        return 2 * architecture.layers
    return 2 * receiver.block + (receiver.part == "mlp")


def _stream(architecture: Architecture, receiver: Receiver) -> str:
    """The residual stream that it reads."""
    if receiver.part == "logits":
        return f"blocks.{architecture.layers - 1}.hook_resid_post"
    return f"blocks.{receiver.block}.hook_resid_{'mid' if receiver.part == 'mlp' else 'pre'}"


def _reading(architecture: Architecture, receiver: Receiver) -> str:
    """What it makes of the stream; an MLP replaced by a LayerNorm has no neurons, only an output."""
    if receiver.part == "logits":
        return "logits"
    block = f"blocks.{receiver.block}."
    if receiver.part == "mlp":
        return f"{block}mlp.hook_pre" if architecture.mlp == "on" else f"{block}hook_mlp_out"
    return f"{block}attn.hook_{receiver.part}"


def _check(architecture: Architecture, sender: Head, receivers: Sequence[Receiver]) -> None:
    if architecture.attention != "on":
        raise InputError(
            f"only a model with attention has heads to patch, got attention = {shown(architecture.attention)}"
        )
    if not (0 <= sender.block < architecture.layers and 0 <= sender.index < architecture.heads):
        raise InputError(f"the model has {architecture.layers} blocks of {architecture.heads} heads, got {sender}")
    known = receivers_of(architecture, sender)
    for receiver in receivers:
        if receiver not in known:
            raise InputError(f"{receiver} does not read what {sender} writes")
