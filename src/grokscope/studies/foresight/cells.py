"""The cells of the collection: what is trained, in which split, and why a run of it may not grok.

Runs of one cell differ in their seeds alone. Most are quick to grok (λ ≥ 2, one layer of width 64). Half of the cells
are on the boundary: their train fraction is found by bisection, so that some of their seeds grok within the budget and
some do not. Only there does it help to say which.
"""

from collections.abc import Iterator
from dataclasses import dataclass, replace
from hashlib import sha256
from itertools import product
from typing import Literal

from grokscope.specs import Architecture, Cadence, RunSpec, Training
from grokscope.specs.norm_hold import NormHold

__all__ = ["CELLS", "RECORDED", "CollectionCell", "Split"]

Split = Literal["development", "test"]
CLOCK = 3.4  # ∫ηλ dt at which half of the development runs have grokked
TIMES = 5  # budgets over the time that this gives
LEAST, MOST = 6_000, 40_000  # steps of a budget
HELD_FROM = 200  # the step at which a norm is frozen, about when runs have memorised
TOO_LITTLE = 0.05  # share of the pairs: no boundary is looked for at or below it, so that no probe is such a run
EVERY = 50  # steps between evaluations of quick runs
SMALL = Architecture(layers=1, width=64, heads=4, mlp_width=256)
MLP = Architecture(kind="mlp", layers=1, activation="relu", mlp_width=256)
RECORDED: dict[int, tuple[str, ...]] = {
    0: ("weight_decay",),
    1: ("train_loss", "train_accuracy"),
    2: (
        *("norm", "norm_unembed", "update_norm", "update_cosine"),
        *("embedding_rank", "embedding_entropy", "logit_map_fsd", "logit_map_rank", "singular_participation"),
    ),
    3: (
        *("output_entropy_train", "train_margin"),
        *("train_fsd", "train_rank", "train_spectral_entropy", "train_share"),
    ),
    4: ("output_entropy", "output_entropy_validation", "input_fsd", "input_rank"),
    5: (
        *("validation_loss", "validation_accuracy", "fsd", "fsd_mode", "rank", "answer_share"),
        *("spectral_entropy", "restricted_logit_loss"),
    ),
}
"""Tier → the columns that every evaluation of a transformer on pairs has, beside the norms of its other blocks."""
OF_PAIRS = frozenset(
    {*RECORDED[4][2:], *RECORDED[2][4:8], "restricted_logit_loss"}  # the logits' modes, too, are modes of symbols
)
"""Those among them that only tables of pairs have: bits have no modes of symbols."""
TEST_SHARE = 0.25  # of the cells of development families, by a digest of their names


@dataclass(frozen=True)
class CollectionCell:
    """A cell, without its seeds."""

    name: str
    """One word."""
    spec: RunSpec
    """Its run of seed 0; of a boundary cell, at the middle of the bracket."""
    kind: Literal["quick", "boundary", "slow", "negative"]
    """What it is in the collection for."""
    cause: str = ""
    """Why a run of it may not grok, where that is planted; negatives are reported by it."""
    bracket: tuple[float, float] | None = None
    """Train fractions between which the boundary is looked for."""
    held_out: str = ""
    """Family or architecture that is a test cell as a whole; empty if it is not."""

    @property
    def split(self) -> Split:
        """Test cells: all of a held-out family or architecture, and a quarter of the others."""
        digest = int(sha256(self.name.encode()).hexdigest()[:8], 16) / 2**32
        return "test" if self.held_out or digest < TEST_SHARE else "development"

    def run(self, seed: int, train_fraction: float | None = None) -> RunSpec:
        """One run of it.

        >>> CELLS["add_mod97-w2-f0.4"].run(3).seeds.split
        3
        """
        found = self.spec.with_seed(seed)
        return found if train_fraction is None else replace(found, train_fraction=train_fraction)


def _spec(
    task: str,
    fraction: float,
    decay: float = 2.0,
    rate: float = 1e-3,
    architecture: Architecture = SMALL,
    batch: int | None = 512,
    shuffled: bool = False,
) -> RunSpec:
    expected = CLOCK / (rate * decay)
    steps = int(min(max(TIMES * expected, LEAST), MOST))
    every = EVERY if expected < 3000 else 100
    training = Training(steps=steps, learning_rate=rate, weight_decay=decay, batch_size=batch)
    return RunSpec(
        task,
        fraction,
        architecture=architecture,
        training=training,
        shuffled_labels=shuffled,
        measurements=Cadence(every=every),
        checkpoints=Cadence(every=None),
    )


def _quick() -> Iterator[CollectionCell]:
    for task, decay, fraction in product(("add_mod97", "sub_mod97", "mult_mod97"), (2.0, 4.0), (0.4, 0.6)):
        yield CollectionCell(f"{task}-w{decay:g}-f{fraction:g}", _spec(task, fraction, decay), "quick")
    for rate, decay in ((3e-4, 4.0), (3e-3, 1.0), (3e-3, 2.0)):
        yield CollectionCell(f"add_mod97-r{rate:g}-w{decay:g}", _spec("add_mod97", 0.4, decay, rate), "quick")
    for width, layers in ((32, 1), (128, 1), (64, 2)):
        model = Architecture(layers=layers, width=width, heads=4, mlp_width=4 * width)
        yield CollectionCell(f"add_mod97-d{width}-l{layers}", _spec("add_mod97", 0.4, architecture=model), "quick")
    for task in ("S5", "A5", "D59"):
        yield CollectionCell(f"{task}-quick", _spec(task, 0.6), "quick", held_out="groups")
    for task in ("parity_n12_k3_tokens", "parity_n12_k2_tokens"):
        yield CollectionCell(task, _spec(task, 0.4, batch=256), "quick", held_out="parity")
    for decay in (1.0, 3.0):
        spec = _spec("add_mod97", 0.5, decay, 3e-3, MLP)
        yield CollectionCell(f"add_mod97-mlp-w{decay:g}", spec, "quick", held_out="mlp")


def _slow() -> Iterator[CollectionCell]:
    for decay, fraction in ((1.0, 0.3), (1.0, 0.5), (0.5, 0.4)):
        spec = _spec("add_mod59", fraction, decay)
        yield CollectionCell(f"add_mod59-w{decay:g}-f{fraction:g}", spec, "slow")


def _boundary() -> Iterator[CollectionCell]:
    tasks = ("add_mod97", "sub_mod97", "mult_mod97", "add_mod59", "add_mod113")
    for task, decay, width in product(tasks, (2.0, 4.0, 8.0), (32, 64)):
        model = Architecture(layers=1, width=width, heads=4, mlp_width=4 * width)
        spec = _spec(task, 0.2, decay, architecture=model)
        yield CollectionCell(f"{task}-edge-w{decay:g}-d{width}", spec, "boundary", bracket=(0.05, 0.35))
    for task, decay in product(("S5", "A5", "D59"), (2.0, 4.0)):
        spec = _spec(task, 0.4, decay)
        yield CollectionCell(f"{task}-edge-w{decay:g}", spec, "boundary", bracket=(0.1, 0.7), held_out="groups")
    for task in ("parity_n12_k3_tokens", "parity_n12_k2_tokens"):
        spec = _spec(task, 0.225, batch=256)
        yield CollectionCell(f"{task}-edge", spec, "boundary", bracket=(0.05, 0.4), held_out="parity")
    for decay in (1.0, 3.0):
        spec = _spec("add_mod97", 0.275, decay, 3e-3, MLP)
        yield CollectionCell(f"add_mod97-edge-mlp-w{decay:g}", spec, "boundary", bracket=(0.05, 0.5), held_out="mlp")


def _negative() -> Iterator[CollectionCell]:
    for decay in (2.0, 4.0):
        shuffled = _spec("add_mod97", 0.4, decay, shuffled=True)
        yield CollectionCell(f"shuffled-w{decay:g}", shuffled, "negative", "shuffled labels")
        for task in ("latin97", "random97"):
            spec = _spec(task, 0.4, decay)
            yield CollectionCell(f"{task}-w{decay:g}", spec, "negative", "no structure to find")
        held = replace(_spec("add_mod97", 0.4, decay), norm_hold=NormHold(start=HELD_FROM))
        yield CollectionCell(f"norm-held-w{decay:g}", held, "negative", "norm frozen")
        spec = _spec("add_mod97", TOO_LITTLE, decay)
        yield CollectionCell(f"little-data-w{decay:g}", spec, "negative", "too little data")
    for task in ("add_mod97", "mult_mod97"):
        spec = replace(_spec(task, 0.4), training=replace(_spec(task, 0.4).training, weight_decay=0.03))
        yield CollectionCell(f"{task}-weak-decay", spec, "negative", "λ too small for the budget")


CELLS: dict[str, CollectionCell] = {
    cell.name: cell for part in (_quick(), _slow(), _boundary(), _negative()) for cell in part
}
"""Name → cell."""
