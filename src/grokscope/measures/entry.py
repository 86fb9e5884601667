"""One entry of the catalogue: what a measure is, who defined it, what it costs, and how it is computed."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass

from torch import Tensor

from grokscope.activations import Need
from grokscope.measures.question import Question

__all__ = ["BLOCK_0", "FORWARD", "MOSTLY_CONSTANT", "NOT_NUMBERS", "UNTRAINED", "Columns", "Measure"]

Columns = Mapping[str, Tensor]
"""Named values, one for each run."""

# Phrases that several entries share.
FORWARD = "one forward pass of all pairs"
BLOCK_0 = "block 0 of all pairs, shared by all measures that read it"
MOSTLY_CONSTANT = "most neurons are constant over the answers, or activations are not numbers"
NOT_NUMBERS = "weights or logits are not numbers"
UNTRAINED = "untrained networks of the same spec (see fsd_null): their neurons agree before anything is learnt"


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
