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

import torch
from torch import Tensor

from grokscope.activations import RunStack
from grokscope.activations.run_stack import PAIRS_AT_ONCE
from grokscope.errors import require, shown
from grokscope.measures.question import Columns, Measure, Question
from grokscope.model import Head, Receiver, Taps, receivers_of
from grokscope.randomness import uniform
from grokscope.shapes import Float, Int
from grokscope.specs import Architecture
from grokscope.tasks import Task

__all__ = ["ENTRIES", "PatchEffect", "drawn_pairs", "head_patching", "path_patching"]

SiteEdits = dict[str, Callable[[Tensor], Tensor]]
PATCHED_PAIRS = 512  # pairs of inputs a patch is averaged over


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


def drawn_pairs(task: Task, count: int, seed: int) -> tuple[Int[Tensor, " pairs"], Int[Tensor, " pairs"]]:
    """Rows of `task.inputs`: x drawn uniformly, x' uniformly among the inputs with another answer.

    >>> from grokscope.tasks import named_task
    >>> task = named_task("add_mod5")
    >>> clean, other = drawn_pairs(task, count=100, seed=0)
    >>> bool((task.answers[clean] != task.answers[other]).all())
    True
    """
    answers = torch.tensor(task.answers)
    counts = torch.bincount(answers)
    require(
        counts.max() != len(answers), f"all inputs of {task.name} have the same answer: there is none to patch from"
    )
    first, second = uniform(torch.tensor(seed), "null", torch.tensor(1), 2 * count).view(2, -1)
    clean = (first * len(answers)).long()
    # Sorted by answer, the inputs with x's own stand together and are stepped over.
    own = answers[clean]
    start, size = (counts.cumsum(0) - counts)[own], counts[own]
    place = (second * (len(answers) - size)).long()
    return clean, answers.argsort(stable=True)[place + size * (place >= start)]


def path_patching(
    subject: RunStack,
    clean: Int[Tensor, " clean"],
    corrupt: Int[Tensor, " corrupt"],
    sender: Head,
    receivers: Receiver | Iterable[Receiver],
) -> PatchEffect:
    """The effect on x of what the receivers would read if the sender had seen x'; inputs are rows of `task.inputs`.

    >>> from grokscope.activations import subject_of
    >>> from grokscope.specs import RunSpec
    >>> from grokscope.tasks import named_task
    >>> from grokscope.training import Cohort, initial_state
    >>> small = Architecture(layers=2, width=8, heads=2, mlp_width=16)
    >>> specs = [RunSpec("add_mod5", architecture=small)]
    >>> subject = subject_of(specs, initial_state(Cohort(specs)).weights)
    >>> clean, corrupt = drawn_pairs(named_task("add_mod5"), count=20, seed=0)
    >>> path_patching(subject, clean, corrupt, Head(0, 1), receivers_of(small, Head(0, 1))).effect.shape
    torch.Size([1, 20])
    """
    wanted = (receivers,) if isinstance(receivers, Receiver) else tuple(receivers)
    _check(subject.architecture, sender, wanted)

    def patch(tokens: Tensor, written: Tensor, z: Tensor) -> Tensor:
        edits: SiteEdits = {}
        for stage in sorted({receiver.stage(subject.architecture) for receiver in wanted}):
            own = [receiver for receiver in wanted if receiver.stage(subject.architecture) == stage]
            stream = {own[0].stream(subject.architecture): lambda x: x + written}
            heads: dict[str, list[int]] = {}
            for receiver in own:
                heads.setdefault(receiver.site(subject.architecture), []).append(receiver.head)
            seen = _run(subject, tokens, list(heads), edits | stream)
            edits |= {site: _replacement(site, seen[site], heads[site]) for site in heads}
        return _run(subject, tokens, ["logits"], edits)["logits"]

    return _effects(subject, clean, corrupt, sender, patch)


def head_patching(
    subject: RunStack, clean: Int[Tensor, " clean"], corrupt: Int[Tensor, " corrupt"], sender: Head
) -> PatchEffect:
    """Activation patching: the effect on x of the head's output on x', read by everyone.

    >>> from grokscope.activations import subject_of
    >>> from grokscope.specs import RunSpec
    >>> from grokscope.tasks import named_task
    >>> from grokscope.training import Cohort, initial_state
    >>> small = Architecture(layers=2, width=8, heads=2, mlp_width=16)
    >>> specs = [RunSpec("add_mod5", architecture=small)]
    >>> subject = subject_of(specs, initial_state(Cohort(specs)).weights)
    >>> clean, corrupt = drawn_pairs(named_task("add_mod5"), count=20, seed=0)
    >>> head_patching(subject, clean, corrupt, Head(0, 1)).effect.shape
    torch.Size([1, 20])
    """
    _check(subject.architecture, sender, ())
    site = sender.site

    def patch(tokens: Tensor, written: Tensor, z: Tensor) -> Tensor:
        return _run(subject, tokens, ["logits"], {site: lambda value: _with_heads(value, z, [sender.index])})["logits"]

    return _effects(subject, clean, corrupt, sender, patch)


def _effects(
    subject: RunStack, clean: Tensor, corrupt: Tensor, sender: Head, patch: Callable[[Tensor, Tensor, Tensor], Tensor]
) -> PatchEffect:
    """Logit differences before and after a patch, made of x's tokens, Δ and the z of x'; some pairs at once."""
    require(
        len(clean) == len(corrupt) and len(clean),
        f"inputs are patched in pairs, got {len(clean)} clean and {len(corrupt)} corrupt ones",
    )
    tokens, site = torch.tensor(subject.task.tokens, device=subject.device), sender.site
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


def _run(subject: RunStack, tokens: Tensor, sites: Sequence[str], edits: SiteEdits | None = None) -> dict[str, Tensor]:
    """Sites' values for some inputs, tokens [positions, inputs]."""
    return subject.run(tokens, Taps(read=frozenset(sites), edits=edits or {}))


def _written(subject: RunStack, sender: Head, z: Tensor) -> Float[Tensor, "runs positions pairs width"]:
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


def _check(architecture: Architecture, sender: Head, receivers: Sequence[Receiver]) -> None:
    require(
        architecture.kind == "transformer",
        f"only a transformer has heads to patch, got kind = {shown(architecture.kind)}",
    )
    require(
        architecture.attention == "on",
        f"only a model with attention has heads to patch, got attention = {shown(architecture.attention)}",
    )
    require(
        0 <= sender.block < architecture.layers and 0 <= sender.index < architecture.heads,
        f"the model has {architecture.layers} blocks of {architecture.heads} heads, got {sender}",
    )
    known = receivers_of(architecture, sender)
    for receiver in receivers:
        require(receiver in known, f"{receiver} does not read what {sender} writes")


def _columns(question: Question) -> Columns:
    """What each head's output, and its direct path to the logits, carry of the difference between two inputs."""
    subject, found = question.stack, {}
    _check(subject.architecture, Head(0, 0), ())
    pairs = drawn_pairs(subject.task, PATCHED_PAIRS, question.seed)
    for block in range(subject.architecture.layers):
        for index in range(subject.architecture.heads):
            head = Head(block, index)
            found[f"head{block}.{index}"] = head_patching(subject, *pairs, head).share
            found[f"head{block}.{index}_to_logits"] = path_patching(subject, *pairs, head, Receiver("logits")).share
    return found


ENTRIES = {
    "patching": Measure(
        title="Path patching: what a head carries from input to answer",
        formula="share = mean(d_patched − d_clean) / mean(d_corrupt − d_clean), d = logit(answer of x) − logit(of x′)",
        source="Wang et al. 2022; the paper names it as missing",
        cost=f"{PATCHED_PAIRS} pairs of inputs, some passes for each head",
        null="0 for a head that carries nothing; shares of all heads need not add up to 1",
        undefined="the model has no attention (rejected), the answers of x and x′ have equal logits, or are not "
        "numbers",
        columns={
            "head{0.0,…}": "activation patching: the head's output from x′, read by all",
            "head{0.0,…}_to_logits": "path patching: read by the logits alone",
        },
        compute=_columns,
        needs=frozenset({"classes", "edits", "weights"}),
    ),
}
