"""The signals: what each reads, in which direction it warns, from which threshold on its source says so.

Tiers of information, as the benchmark of forecasters has them: 1 training scalars, 2 weights, 3 gradients or
activations on training rows, 4 activations on all inputs with labels unseen, 5 labels of all rows.
"""

from collections.abc import Collection
from dataclasses import dataclass
from typing import Literal

__all__ = [
    "AFTERWARDS",
    "CIRCUITS",
    "MEASURES",
    "ONE_LAYER",
    "SIGNALS",
    "Published",
    "Signal",
    "measured_in",
    "signal_named",
]

CHUGHTAI, NANDA = "Chughtai et al. 2023 (arXiv:2302.03025)", "Nanda et al. 2023 (arXiv:2301.05217)"
SEED_PAPER, ENTROPY = "Sivasankar 2026 (arXiv:2606.12966)", "Truong et al. 2026 (arXiv:2604.13123)"
COMMUTATOR, EDGE = "Xu 2026 (arXiv:2602.16746)", "Xu 2026 (arXiv:2603.28964)"
FIRST_VALUES = 3  # of which the median is the baseline of a growth, as in arXiv:2602.16746
How = Literal["value", "growth", "decline"]


@dataclass(frozen=True)
class Published:
    """From where on a source counts a signal as given."""

    threshold: float
    """Of the value, or of its growth or decline."""
    on_groups: float | None
    """The same on groups, whose irreps are read; None where the source has none for them."""
    where: str
    """Where it is written, or what was assumed."""
    least: float = 0.0
    """What the value itself must reach besides."""


@dataclass(frozen=True)
class Signal:
    """One signal."""

    name: str
    """One word, for options and claims."""
    title: str
    """What a row calls it."""
    column: str
    """Its column in the records."""
    tier: int
    """The information that it needs."""
    source: str
    """Who proposed it as a sign of grokking; empty for what everybody logs."""
    rises: bool = False
    """Whether it warns by rising, or by falling."""
    measure: str = ""
    """The measure that gives the column at checkpoints; empty where the training log has it."""
    how: How = "value"
    """`growth`: over the median of its first three values. `decline`: its highest value so far over its value."""
    published: Published | None = None
    """The source's threshold, where there is one."""

    @property
    def is_retrospective(self) -> bool:
        """Whether it is read with the key modes of the final model, which nobody knows beforehand: it cannot warn."""
        return self.column.endswith("@final")


def _losses(name: str, title: str, measure: str, source: str, rises: bool) -> tuple[Signal, Signal]:
    """A restricted or excluded loss with the key modes of each checkpoint, and with those of the final model."""
    kind = "excluded" if rises else "restricted"
    return (
        Signal(f"{name}-{kind}", f"{title}, this checkpoint's keys", measure, 5, source, rises, measure),
        Signal(
            f"{name}-{kind}-final", f"{title}, final keys", f"{measure}@final", 5, source, rises, f"{measure}@final"
        ),
    )


SIGNALS: tuple[Signal, ...] = (
    Signal("validation-accuracy", "Validation accuracy", "validation_accuracy", 5, "", rises=True),
    Signal("validation-loss", "Validation loss", "validation_loss", 5, ""),
    Signal("train-loss", "Train loss", "train_loss", 1, ""),
    Signal("norm", "Weight norm", "norm", 2, ""),
    Signal(
        "fsd", "FSD", "fsd", 5, SEED_PAPER, rises=True,
        published=Published(0.80, 0.50, "Table 2; on groups FSD_gen, Table 11"),
    ),
    Signal(
        "rank", "Median Fourier rank", "rank", 5, SEED_PAPER,
        published=Published(1.0, None, "§5.3: Phase 2 begins at median rank 1"),
    ),
    Signal(
        "seed-restricted", "Restricted loss, the seven strongest modes", "paper_restricted", 5, SEED_PAPER,
        measure="paper_restricted", published=Published(0.5, 0.5, "Table 3, in nats"),
    ),
    *_losses("nanda", "Restricted loss of Nanda et al.", "trig", NANDA, rises=False),
    *_losses("nanda", "Excluded loss of Nanda et al.", "excluded", NANDA, rises=True),
    *_losses("chughtai", "Restricted loss of Chughtai et al.", "hidden_restricted", CHUGHTAI, rises=False),
    *_losses("chughtai", "Excluded loss of Chughtai et al.", "hidden_excluded", CHUGHTAI, rises=True),
    Signal(
        "entropy", "Spectral entropy, block 0's neurons", "representation_entropy", 4, ENTROPY,
        measure="representation",
        published=Published(0.61, None, "abstract; on S5 it is another, which is not there"),
    ),
    Signal(
        "residual-entropy", "Spectral entropy, residual stream", "residual_entropy", 4, ENTROPY, measure="residual",
        published=Published(0.61, None, "abstract; on S5 it is another, which is not there"),
    ),
    Signal(
        "commutator", "Commutator defect, over its first values", "commutator_defect", 3, COMMUTATOR, rises=True,
        measure="commutator", how="growth",
        published=Published(10.0, 10.0, "its section on prediction: ten times its first three values, and 20", 20.0),
    ),
    Signal(
        "gap", "g₂₃ of attention updates, highest over present", "attention_gap_23", 2, EDGE, rises=True,
        measure="attention_updates", how="decline",
        published=Published(4.53, 4.53, "assumed: the smallest decline of a run that groks in the author's code"),
    ),
    Signal(
        "top-share", "Share of one direction in the last ten updates", "update_top_share", 2, EDGE, rises=True,
        measure="update_spectrum",
    ),
)  # fmt: skip
_GIVEN_AFTERWARDS = ("attention_updates", "update_spectrum")
MEASURES = tuple(
    dict.fromkeys(
        one.measure
        for one in SIGNALS
        if one.measure and not one.is_retrospective and one.measure not in _GIVEN_AFTERWARDS
    )
)
"""What is measured at every checkpoint while runs are trained."""
AFTERWARDS = (*(one.measure for one in SIGNALS if one.is_retrospective), *_GIVEN_AFTERWARDS)
"""What is measured at every checkpoint once a run has ended."""
CIRCUITS = ("nanda", "S5")
"""The cells in which losses with the final model's keys are read: they cannot warn, and claims are of these alone."""
ONE_LAYER = ("one-layer", "shuffled-one-layer")
"""The cells in which spectral entropy is also of neurons: eigenvalues of 512 dimensions take longer than all else."""


def signal_named(name: str) -> Signal:
    """The signal with this name.

    >>> signal_named("commutator").tier
    3
    """
    return next(one for one in SIGNALS if one.name == name)


def measured_in(cells: Collection[str]) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """What is measured of runs of some cells at every checkpoint: while they are trained, and once they have ended.

    >>> measured_in(["add97"])[1]
    ('attention_updates', 'update_spectrum')
    """
    is_one_layer, has_circuits = set(cells) <= set(ONE_LAYER), set(cells) <= set(CIRCUITS)
    always = tuple(name for name in MEASURES if name != "representation" or is_one_layer)
    return always, tuple(name for name in AFTERWARDS if "@" not in name or has_circuits)
