"""What is asked of a subject, and what was read of it already: several measures share one pass over the inputs."""

from dataclasses import dataclass, field

import torch

from grokscope.activations import ConditionedMeans, Conditioning, Subject, conditioned_means, conditioning_basis
from grokscope.errors import InputError
from grokscope.measures.filters import key_modes, last_hidden_site, top_modes
from grokscope.measures.spectrum import Spectrum, spectrum
from grokscope.measures.synchronization import fsd_site
from grokscope.shapes import Bool
from grokscope.specs import ReadingSpec, RunSpec
from grokscope.specs.spec import WORD_LIMIT, require
from grokscope.tasks import Basis

__all__ = ["Question"]


@dataclass(frozen=True, eq=False)
class Question:
    """A subject and how to read it; means are read once, whatever is asked of them."""

    subject: Subject
    """The runs, or one run's checkpoints."""
    reading: ReadingSpec = field(default_factory=ReadingSpec)
    """Thresholds, top-K, penalties."""
    by: Conditioning = "answer"
    """What activations are conditioned on."""
    basis_name: str = ""
    """The basis they are read in; the task's faithful one if not given."""
    reference: Subject | None = None
    """The checkpoint whose key modes are taken (retrospective); each one's own if not given (causal)."""
    spec: RunSpec | None = None
    """The run's spec, for the null of untrained networks."""
    seed: int = 0
    """Of everything drawn: nulls, resampled inputs, trained fits."""
    _means: dict[str, ConditionedMeans] = field(default_factory=dict, init=False, repr=False)
    """What was read already, by site."""

    def __post_init__(self) -> None:
        require(0 <= self.seed < WORD_LIMIT, "the seed must lie in [0, 2^63)", self.seed)
        if self.reference is None:
            return
        if len(self.reference) != 1:
            raise InputError(f"a reference is one checkpoint, got {len(self.reference)}")
        if self.reference.task.name != self.subject.task.name:
            raise InputError(f"a reference must have learnt {self.subject.task.name}, got {self.reference.task.name}")

    @property
    def basis(self) -> Basis:
        """The basis itself."""
        return conditioning_basis(self.subject.task, self.by, self.basis_name)

    @property
    def site(self) -> str:
        """Where FSD is read: block 0's neurons, or its attention output (`ReadingSpec.fsd_site`)."""
        chosen = self.reading.fsd_site
        if chosen == "auto":
            return fsd_site(self.subject.architecture)
        if chosen == "mlp" and self.subject.architecture.mlp != "on":
            raise InputError("fsd_site 'mlp' needs a model with MLPs; this one has none")
        return "blocks.0.mlp.hook_post" if chosen == "mlp" else "blocks.0.hook_attn_out"

    @property
    def last_site(self) -> str:
        """The last block's neurons, which the paper's restricted loss filters."""
        return last_hidden_site(self.subject.architecture)

    def means(self, site: str = "") -> ConditionedMeans:
        """A[s, j] of a site (where FSD is read, if not named), read once."""
        site = site or self.site
        if site not in self._means:
            self._means[site] = conditioned_means(self.subject, site, self.by)
        return self._means[site]

    def spectrum(self, site: str = "") -> Spectrum:
        """The spectrum of those means."""
        return spectrum(self.means(site).means, self.basis)

    def keys(self, count: int | None) -> Bool[torch.Tensor, "#runs modes"] | None:
        """Key modes of the reference, `count` by participation or Nanda et al.'s; None where there is no reference."""
        if self.reference is None:
            return None
        if count is None:
            return key_modes(self.reference, basis=self.basis)
        return top_modes(self.reference, self.last_site, count, basis=self.basis, by=self.by)
