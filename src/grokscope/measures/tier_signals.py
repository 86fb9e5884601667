"""What weights and activations say at every evaluation of a stack in training, by the information that it needs.

One forward pass over all rows, in chunks, for all runs of a task together: some hundred times cheaper than the measures
of the same names, to which tests hold it. Tiers are those of `grokscope.forecast.TIERS`: 2 weights; 3 activations on
training rows, with their labels; 4 activations on all inputs, labels unseen; 5 the answers of all rows.

Equal to rounding, not to the last bit: sums over a chunk are taken in the order of the device.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

import torch
from torch import Tensor

from grokscope.activations import answer_sums
from grokscope.measures.concentration import spectral_entropy
from grokscope.measures.mode_choice import RESTRICTED_MODES, strongest_modes
from grokscope.measures.output_entropy import output_entropy
from grokscope.measures.projections import kept_means, mode_part
from grokscope.measures.rank import fourier_rank
from grokscope.measures.singular_values import matrices_of
from grokscope.measures.spectrum import spectrum
from grokscope.measures.synchronization import fsd
from grokscope.measures.weight_spectra import logit_map
from grokscope.model import Weights, forward_with_hidden
from grokscope.shapes import Float, Int
from grokscope.tasks import PADDING, TRAIN, VALIDATION, Task
from grokscope.training import Cohort, arithmetic

__all__ = ["TIER_COLUMNS", "tier_signals"]

ROWS_AT_ONCE = {"cpu": 2048, "cuda": 2**18, "mps": 2**16}  # rows × runs of a chunk
RUNS_AT_ONCE = 64
TIER_COLUMNS: dict[str, tuple[int, str]] = {
    "embedding_rank": (2, "modes that hold 90 % of the token embedding's power"),
    "embedding_entropy": (2, "spectral entropy of the token embedding, in [0, 1]"),
    "logit_map_fsd": (2, "FSD of the map from the last neurons to logits"),
    "logit_map_rank": (2, "its median rank"),
    "singular_participation": (2, "mean over weight matrices of (Σσ²)²/Σσ⁴: how many directions each uses"),
    "output_entropy_train": (3, "mean entropy of the prediction over training rows, in nats"),
    "train_margin": (3, "mean over training rows of the label's logit less the highest other one"),
    "train_fsd": (3, "FSD of block 0 from means over the training rows with each label"),
    "train_rank": (3, "median Fourier rank from those means"),
    "train_spectral_entropy": (3, "median spectral entropy from those means"),
    "train_share": (3, "share of the activations' variance over training rows that is between labels"),
    "output_entropy": (4, "mean entropy of the prediction over all rows, in nats"),
    "output_entropy_validation": (4, "the same over validation rows, whose labels are not read"),
    "input_fsd": (4, "FSD of block 0 from means over the rows with each first symbol"),
    "input_rank": (4, "median Fourier rank from those means"),
    "spectral_entropy": (5, "median spectral entropy of block 0 from means over all rows with each answer"),
    "restricted_logit_loss": (
        5,
        "loss, by true answers, of the logits' answer means kept in the 7 modes with most neurons of block 0",
    ),
}
"""Name → tier and meaning; a task without a basis has the entropies, the margin and the participation alone."""


def tier_signals(
    weights: Float[Tensor, "runs parameters"], cohort: Cohort, due: Sequence[int] | None = None
) -> list[dict[str, float]]:
    """One row for each run, with the `TIER_COLUMNS` that its task and model have; none where answers are real.

    With `due`, the rows of other slots stay empty: a run that has ended costs nothing.

    >>> from grokscope.specs import RunSpec
    >>> from grokscope.training import initial_state
    >>> cohort = Cohort([RunSpec("add_mod5")])
    >>> [row] = tier_signals(initial_state(cohort).weights, cohort)
    >>> {*row} == {*TIER_COLUMNS}
    True
    """
    rows: list[dict[str, float]] = [{} for _ in range(len(cohort))]
    with torch.no_grad(), arithmetic("float32"):
        for task, placed in cohort.slots_by_task.items():
            chosen = placed if due is None else placed[torch.isin(placed.cpu(), torch.tensor(due)).to(placed.device)]
            if task.is_real or not len(chosen):
                continue
            for slots in torch.split(chosen.to(weights.device), RUNS_AT_ONCE):
                found = _signals(weights[slots], cohort, task, slots)
                columns = {name: values.double().tolist() for name, values in found.items()}
                for place, slot in enumerate(slots.tolist()):
                    rows[slot] = {name: values[place] for name, values in columns.items()}
    return rows


def _signals(flat: Tensor, cohort: Cohort, task: Task, slots: Int[Tensor, " slots"]) -> dict[str, Tensor]:
    weights = cohort.layout.views(flat)
    sums = _Sums()
    for part in _parts(cohort, task, slots):
        sums.add(weights, cohort, task, part)
    found = _of_weights(weights, cohort, task) | sums.columns(task)
    return {name: found[name] for name in TIER_COLUMNS if name in found}


def _of_weights(weights: Weights, cohort: Cohort, task: Task) -> dict[str, Tensor]:
    architecture = cohort.architecture
    matrices = matrices_of(weights, architecture, task).values()
    found = {"singular_participation": torch.stack([_participation(one) for one in matrices]).mean(dim=0)}
    if not _is_read_by_answer(task):
        return found
    if "embed.W_E" in weights:
        power = spectrum(weights["embed.W_E"][:, : task.classes], task.basis()).power.sum(dim=-1)[..., None]
        found |= {"embedding_rank": fourier_rank(power).median, "embedding_entropy": spectral_entropy(power).pooled}
    if architecture.layers > 0 if architecture.kind == "mlp" else architecture.mlp == "on":
        waves = spectrum(logit_map(weights, architecture, task.classes), task.basis())
        found |= {"logit_map_fsd": fsd(waves.density).fsd, "logit_map_rank": fourier_rank(waves.power).median}
    return found


def _participation(matrix: Float[Tensor, "runs rows columns"]) -> Float[Tensor, " runs"]:
    """(Σσ²)²/Σσ⁴ = ‖W‖_F⁴/‖WᵀW‖_F², in [1, rank], of the shorter side's Gram matrix; NaN of a matrix of zeros."""
    wide = matrix.double()
    gram = wide.mT @ wide if wide.shape[-1] <= wide.shape[-2] else wide @ wide.mT
    return wide.square().sum(dim=(-2, -1)).square() / gram.square().sum(dim=(-2, -1))


@dataclass(frozen=True)
class _Part:
    """Some rows of some runs."""

    given: Tensor
    """What the model reads."""
    labels: Int[Tensor, "runs rows"]
    """What the loss sees."""
    group: Int[Tensor, "runs rows"]
    """TRAIN, VALIDATION, another group, or PADDING."""
    conditions: Int[Tensor, "runs rows"]
    """What activations are averaged over."""
    classes: Int[Tensor, " runs"]
    """How many there are."""


def _parts(cohort: Cohort, task: Task, slots: Tensor) -> Iterator[_Part]:
    tables = cohort.tables
    axis = 1 if tables.given.is_floating_point() else 2  # vectors are [runs, rows, features]
    size = max(256, ROWS_AT_ONCE[cohort.device.type] // len(slots))
    for start in range(0, task.rows, size):
        rows = slice(start, min(start + size, task.rows))
        yield _Part(
            tables.given[slots].narrow(axis, start, rows.stop - start).contiguous(),
            tables.labels[slots, rows],
            tables.group[slots, rows],
            tables.conditions[slots, rows],
            cohort.classes[slots],
        )


@dataclass
class _Sums:
    """Sums over all rows seen so far, in float64, around one activation of each neuron."""

    origin: Tensor | None = None
    totals: dict[str, Tensor] = field(default_factory=dict)

    def add(self, weights: Weights, cohort: Cohort, task: Task, part: _Part) -> None:
        """Add a chunk of rows."""
        separator = cohort.key.sizes.has_separator
        logits, hidden = forward_with_hidden(weights, cohort.architecture, part.given, part.classes, separator)
        logits = logits[..., : task.classes]
        if self.origin is None:
            self.origin = hidden[:, :1].clone()
        hidden = hidden - self.origin
        is_train, is_row = part.group == TRAIN, part.group != PADDING
        entropy = output_entropy(logits)
        for name, mask in {"train": is_train, "validation": part.group == VALIDATION, "all": is_row}.items():
            self._note(f"count {name}", mask.sum(dim=1))
            self._note(f"entropy {name}", torch.where(mask, entropy, 0).sum(dim=1))
        self._note("margin", torch.where(is_train, _margins(logits, part.labels), 0).sum(dim=1))
        if not task.bases:
            return
        size = task.condition().size
        # By what the loss sees: of shuffled labels the answers are not known to who has the training rows alone.
        seen = part.labels if _is_read_by_answer(task) else part.conditions
        over = {"train": (is_train, seen, size), "all": (is_row, part.conditions, size)}
        if task.pairs is not None and _is_read_by_answer(task):
            over["input"] = (is_row, part.given[:, 0], task.symbols)
        for name, (mask, values, count) in over.items():
            chosen = torch.where(mask, values, -1)
            self._note(f"sums {name}", answer_sums(hidden, chosen, count))
            self._note(f"counts {name}", _counts(chosen, count))
        self._note("squares", torch.where(is_train[..., None], hidden.square(), 0).sum(dim=(1, 2)))
        if _is_read_by_answer(task):
            self._note("logits", answer_sums(logits, torch.where(is_row, part.conditions, -1), size))

    def _note(self, name: str, value: Tensor) -> None:
        wide = value.double()
        self.totals[name] = self.totals[name] + wide if name in self.totals else wide

    def columns(self, task: Task) -> dict[str, Tensor]:
        """What all rows say."""
        totals = self.totals
        found = {
            "output_entropy_train": totals["entropy train"] / totals["count train"],
            "output_entropy_validation": totals["entropy validation"] / totals["count validation"],
            "output_entropy": totals["entropy all"] / totals["count all"],
            "train_margin": totals["margin"] / totals["count train"],
        }
        for name in ("train", "all", "input"):
            if f"sums {name}" in totals:
                found |= self._modes(name, task)
        if "logits" in totals:
            found["restricted_logit_loss"] = self._restricted(task)
        return found

    def _means(self, name: str) -> Float[Tensor, "runs conditions neurons"]:
        """Means by condition; where no training row has one, the mean of all, which adds no variation."""
        sums, counts = self.totals[f"sums {name}"], self.totals[f"counts {name}"][..., None]
        every = sums.sum(dim=1, keepdim=True) / counts.sum(dim=1, keepdim=True)
        return torch.where(counts > 0, sums / counts.clamp(min=1), every)

    def _modes(self, name: str, task: Task) -> dict[str, Tensor]:
        assert self.origin is not None
        means = self._means(name)
        waves = spectrum(means + self.origin.double(), task.basis())
        synchronized, rank = fsd(waves.density).fsd, fourier_rank(waves.power).median
        entropy = spectral_entropy(waves.power).median
        if name == "all":
            return {"spectral_entropy": entropy}
        if name == "input":
            return {"input_fsd": synchronized, "input_rank": rank}
        return {
            "train_fsd": synchronized,
            "train_rank": rank,
            "train_spectral_entropy": entropy,
            "train_share": self._train_share(means),
        }

    def _train_share(self, means: Tensor) -> Float[Tensor, " runs"]:
        counts, rows = self.totals["counts train"][..., None], self.totals["count train"]
        mean = (means * counts).sum(dim=1, keepdim=True) / rows[:, None, None]
        between = ((means - mean).square() * counts).sum(dim=(1, 2))
        return between / (self.totals["squares"] - rows * mean.square().sum(dim=(1, 2)))

    def _restricted(self, task: Task) -> Float[Tensor, " runs"]:
        assert self.origin is not None
        basis, counts = task.basis(), self.totals["counts all"]
        hidden = spectrum(self._means("all") + self.origin.double(), basis)
        modes = strongest_modes(hidden.density, RESTRICTED_MODES)
        logits = self.totals["logits"] / counts[..., None]
        kept = kept_means(logits, mode_part(logits, basis, modes), basis)
        losses = -kept.log_softmax(dim=-1).diagonal(dim1=-2, dim2=-1)
        return (losses * counts).sum(dim=-1) / counts.sum(dim=-1)


def _is_read_by_answer(task: Task) -> bool:
    """Whether its basis is one of functions of the answer, as of pair tables; not of bits of the input."""
    return bool(task.bases) and task.basis().condition == "answer"


def _margins(logits: Tensor, labels: Tensor) -> Float[Tensor, "runs rows"]:
    """The label's logit less the highest other one; of rows without a label (padding), of class 0."""
    place = labels.clamp(min=0)[..., None]
    own = logits.gather(-1, place)
    return (own - logits.scatter(-1, place, -torch.inf).amax(dim=-1, keepdim=True))[..., 0].double()


def _counts(values: Int[Tensor, "runs rows"], size: int) -> Int[Tensor, "runs size"]:
    return (values[..., None] == torch.arange(size, device=values.device)).sum(dim=1)
