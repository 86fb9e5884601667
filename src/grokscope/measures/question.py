"""What is asked of a subject, and what a measure is: an entry of the catalogue that answers a question.

Several measures of one question share one pass over the inputs.
"""

import re
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from fnmatch import fnmatchcase
from typing import Any, TypeVar

from torch import Tensor

from grokscope.activations import (
    ConditionedMeans,
    Conditioning,
    Need,
    RunStack,
    Subject,
    Trajectory,
    conditioning_basis,
)
from grokscope.errors import InputError, require
from grokscope.measures.spectrum import Spectrum, spectrum
from grokscope.shapes import Bool
from grokscope.specs import ReadingSpec, RunSpec
from grokscope.specs.spec import WORD_LIMIT
from grokscope.tasks import Basis

__all__ = ["BLOCK_0", "FORWARD", "MOSTLY_CONSTANT", "NOT_NUMBERS", "UNTRAINED", "Columns", "Measure", "Question"]

Result = TypeVar("Result")
Columns = Mapping[str, Tensor]
"""Named values, one for each run."""

# Phrases that several entries share.
FORWARD = "one forward pass of all pairs"
BLOCK_0 = "one forward pass through block 0 on all pairs, shared by all measures that read it"
MOSTLY_CONSTANT = "most neurons are constant over the answers, or activations are not numbers"
NOT_NUMBERS = "weights or logits are not numbers"
UNTRAINED = "untrained networks of the same spec (see fsd_null): their neurons agree before anything is learnt"


@dataclass(frozen=True, eq=False)
class Question:
    """A subject and how to read it; means are read once, however many measures use them."""

    subject: Subject
    """The runs, one run's checkpoints, or somebody else's model."""
    reading: ReadingSpec = field(default_factory=ReadingSpec)
    by: Conditioning = ""
    """What activations are conditioned on."""
    basis_name: str = ""
    """The basis they are read in; the task's faithful one if not given."""
    reference: Subject | None = None
    """The checkpoint whose key modes are taken (retrospective); each one's own if not given (causal)."""
    spec: RunSpec | None = None
    """The run's spec, for the null of untrained networks."""
    seed: int = 0
    """Of everything random: nulls, resampled inputs, trained fits."""
    keys: Bool[Tensor, "1 modes"] | None = None
    """Key modes that are taken whatever the subject's are."""
    trajectory: Trajectory | None = None
    """The stored checkpoints of the run whose checkpoints the subject is, for measures of the updates between them."""
    _known: dict[str, Any] = field(default_factory=dict, init=False, repr=False)
    """What was computed already."""

    def __post_init__(self) -> None:
        require(0 <= self.seed < WORD_LIMIT, "the seed must lie in [0, 2^63)", self.seed)
        if self.trajectory is not None:
            runs, places = len(self.subject), len(self.trajectory.measured)
            require(places == runs, f"a trajectory must name the step of each of {runs} checkpoints, got {places}")
        if self.reference is None:
            return
        require(len(self.reference) == 1, f"a reference is one checkpoint, got {len(self.reference)}")
        require(
            self.reference.task.name == self.subject.task.name,
            f"a reference must have learnt {self.subject.task.name}, got {self.reference.task.name}",
        )

    @property
    def offers(self) -> frozenset[Need]:
        """What the subject offers, and what is given; of key modes that are given, no activations are needed."""
        given: set[Need] = set() if self.keys is None else {"activations"}
        return self.subject.offers | given | (set() if self.trajectory is None else {"trajectory"})

    def has(self, need: Need) -> bool:
        """Whether the question offers this."""
        return need in self.offers

    @property
    def stack(self) -> RunStack:
        """The subject as grokscope's own runs, for measures that need weights or edited passes."""
        if not isinstance(self.subject, RunStack):
            raise InputError(
                f"only grokscope's own runs have weights by name and edited passes, got {self.subject.names[0]}"
            )
        return self.subject

    @property
    def basis(self) -> Basis:
        """The basis itself."""
        return conditioning_basis(self.subject.task, self.by, self.basis_name)

    @property
    def site(self) -> str:
        """Where FSD is read: block 0's neurons, or its attention output (`ReadingSpec.fsd_site`)."""
        chosen = self.reading.fsd_site
        if chosen == "auto":
            return self.subject.hidden_sites[0]
        require(
            chosen != "mlp" or self.stack.architecture.mlp == "on",
            "fsd_site 'mlp' needs a model with MLPs; this one has none",
        )
        return "blocks.0.mlp.hook_post" if chosen == "mlp" else "blocks.0.hook_attn_out"

    def means(self, site: str = "") -> ConditionedMeans:
        """A[s, j] of a site (where FSD is read, if not named), read once."""
        site = site or self.site
        return self.once(f"means of {site}", lambda: self.subject.means(site, self.by))

    def spectrum(self, site: str = "") -> Spectrum:
        """The spectrum of those means."""
        found = self.means(site)
        return spectrum(found.means, self.basis, found.mean_square)

    def once(self, what: str, compute: Callable[[], Result]) -> Result:
        """What several measures use, computed for the first of them."""
        if what not in self._known:
            self._known[what] = compute()
        return self._known[what]


@dataclass(frozen=True)
class Measure:
    """A measure as the catalogue lists it; its module has it in the dictionary `ENTRIES`, after its function."""

    title: str
    """What it is, in a few words."""
    formula: str
    """Its definition."""
    source: str
    """Who defined it, and where."""
    cost: str
    """What has to be computed."""
    null: str
    """What it is where nothing has been learnt, and how that is known."""
    undefined: str
    """When it is NaN."""
    columns: Mapping[str, str]
    """The columns it gives, each with its meaning; `{a,b}` stands for several, `…` for all there are in the model."""
    compute: Callable[[Question], Columns]
    """The columns, with one value for each run."""
    needs: frozenset[Need] = frozenset({"basis", "means"})
    """What a subject must offer. Columns that need more are left out of a subject that does not offer it."""
    headline: str = ""
    """The column to look at first, where it is not the first of `columns`."""

    def headline_of(self, found: Iterable[str]) -> str | None:
        """The column to look at first among those found; None if the measure gave none."""
        patterns = [re.sub(r"\{[^}]*\}|…", "*", column) for column in self.columns]
        own = [column for column in found if any(fnmatchcase(column, pattern) for pattern in patterns)]
        return self.headline if self.headline in own else next(iter(own), None)
