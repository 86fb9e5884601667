"""Somebody else's model as a subject of measures: what one pass over all pairs has read of it."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Any

from torch import Tensor

from grokscope.activations import ConditionedMeans, Conditioning, Edits, Need, Subject, lacking_needs
from grokscope.errors import InputError, did_you_mean, require, shown
from grokscope.measures import MEASURES, Measure
from grokscope.measures.catalogue import lacking
from grokscope.shapes import Bool, Float

__all__ = ["ForeignModel", "foreign_measure", "foreign_measures"]

AT_SITES: frozenset[Need] = frozenset({"means", "activations"})
"""What is read at a site."""
OFFERS: frozenset[Need] = AT_SITES | {"basis", "answers", "pairs", "classes", "logits"}
"""What any model can be asked for, unless its task lacks it."""


@dataclass(frozen=True, eq=False)
class ForeignModel(Subject):
    """One model at one step, as a stack of one run: its sites and logits over all pairs.

    It cannot be asked for weights by name or for edited passes, and nothing that takes seconds is asked of it, for its
    owner is training it. Values that are not numbers are NaN: a monitor logs them and goes on.
    """

    knows_split: bool
    """Whether the training pairs are known; else all pairs count as training pairs."""
    scored: Float[Tensor, "2 1 inputs"]
    """Whether each pair is answered right, and its loss."""
    site_means: Mapping[str, ConditionedMeans]
    """A[s, j] of each site."""
    activations: Mapping[str, Float[Tensor, "1 inputs neurons"]]
    """The activations themselves, if any measure needs them."""
    all_logits: Float[Tensor, "1 inputs classes"] | None
    """The logits, if any measure needs them."""
    site: str = ""
    """The site that is measured; empty for what is measured of the logits alone."""

    def at(self, site: str) -> "ForeignModel":
        """The same model, measured at this site."""
        return replace(self, site=site)

    @property
    def offers(self) -> frozenset[Need]:
        """Logits; what is read at a site; the split where it is known, and what the task has."""
        known: set[Need] = {"split"} if self.knows_split else set()
        unknown = lacking_needs(self.task) | (frozenset() if self.site else AT_SITES)
        return (OFFERS - unknown) | known

    @property
    def hidden_sites(self) -> tuple[str, str]:
        """The site that is measured, of which key modes are taken, too."""
        return self.site, self.site

    def means(self, site: str, by: Conditioning = "") -> ConditionedMeans:
        """A[s, j] of a site, conditioned as the pass was."""
        return self.site_means[site]

    def read(self, site: str, edits: Edits | None = None) -> Float[Tensor, "1 inputs *rest"]:
        """A site's neurons for every pair."""
        self._reject(edits)
        return self.activations[site]

    def logit_parts(self, edits: Edits | None = None) -> Iterator[tuple[slice, Float[Tensor, "1 rows classes"]]]:
        """All logits at once."""
        self._reject(edits)
        assert self.all_logits is not None
        yield slice(0, self.all_logits.shape[1]), self.all_logits

    def graded(self, edits: Edits | None = None) -> Float[Tensor, "2 1 inputs"]:
        """What the pass found of each pair."""
        self._reject(edits)
        return self.scored

    def require_numbers(self, what: str, is_number: Bool[Tensor, "*any"]) -> None:
        """Reject nothing."""

    def _reject(self, edits: Edits | None) -> None:
        require(not edits, f"edited passes need grokscope's own transformer, and {self.names[0]} is another model")


def foreign_measures() -> tuple[str, ...]:
    """Names of the measures that any model has, where its task has a basis.

    >>> "fsd" in foreign_measures(), "ablation" in foreign_measures()
    (True, False)
    """
    return tuple(name for name, one in MEASURES.items() if one.needs <= OFFERS)


def foreign_measure(name: Any) -> Measure:
    """The measure with this name, if it can be taken of any model."""
    known = f"any model has {', '.join(foreign_measures())}"
    require(isinstance(name, str), f"a measure is given by its name, got {shown(name)}; {known}")
    if name not in MEASURES:
        raise InputError(f"there is no measure {shown(name)}{did_you_mean(name, foreign_measures())}; {known}")
    if lacks := lacking(MEASURES[name], OFFERS):
        raise InputError(f"{shown(name)} needs {lacks}, which only grokscope's own models offer; {known}")
    return MEASURES[name]
