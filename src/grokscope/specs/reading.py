"""How a finished run is read: thresholds, bases and filters. None of it changes the run or its name."""

from dataclasses import dataclass
from typing import Literal

from grokscope.specs.spec import Spec, require

__all__ = ["ReadingSpec"]


@dataclass(frozen=True)
class ReadingSpec(Spec):
    """The choices behind every number read from a run; the paper's where reported, else `docs/paper-audit.md` §2."""

    grokked: float = 0.95
    """Validation accuracy that counts as grokked (Table 1)."""
    memorized: float = 0.99
    """Train accuracy that counts as memorised (used, not defined, by the paper)."""
    stable_steps: int = 2000
    """Steps for which a grokked run must stay so, at every evaluation, to count as stable (ours, not the paper's)."""
    fsd_sync: float = 0.80
    """FSD that counts as synchronised (Table 2)."""
    fsd_site: Literal["auto", "mlp", "attention"] = "auto"
    """Where FSD is read in block 0: MLP neurons, or the attention output where there are none (Table 8)."""
    fsd_gen_sync: float = 0.50
    """FSD_gen that counts as synchronised (Table 11)."""
    control_relabellings: int = 20
    """Random orders of the elements under the Z_p-Fourier control on a group, besides the lexicographic one."""
    restricted_sync: float = 0.5
    """Restricted loss, in nats, that counts as synchronised (Table 3)."""
    restricted_modes: int = 7
    """Frequencies kept by the restricted loss."""
    restricted_filter: Literal["answer_mean", "input_pairs"] = "answer_mean"
    """`answer_mean` filters the answer-conditioned mean; `input_pairs` filters over (a, b) in two dimensions."""
    restricted_scored_on: Literal["all", "train", "validation"] = "all"
    """The pairs on which the restricted loss is averaged."""
    fourier_kan_frequencies: int | None = None
    """K of the FourierKAN fit; None is ⌊p/2⌋, every frequency."""
    fourier_kan_penalty: float = 0.1
    """Its L1 penalty, relative to each neuron's largest coefficient."""

    def sync_at(self, is_group: bool) -> float:
        """What counts as synchronised: FSD_gen's threshold where a group's irreps are read, else FSD's.

        >>> ReadingSpec().sync_at(is_group=True)
        0.5
        """
        return self.fsd_gen_sync if is_group else self.fsd_sync

    def check(self) -> None:
        """Shares lie in (0, 1], counts are positive."""
        self.require_each("lie in (0, 1]", "grokked", "memorized", "fsd_sync", "fsd_gen_sync")
        self.require_each(
            "be at least 1", "stable_steps", "control_relabellings", "restricted_modes", "fourier_kan_frequencies"
        )
        self.require_each("be positive", "restricted_sync")
        self.require_each("be at least 0", "fourier_kan_penalty")
        require(
            self.control_relabellings <= 10_000,
            "control_relabellings must be at most 10,000",
            self.control_relabellings,
        )
