"""Every way in which FSD and rank could have been read, to see whether a result depends on a choice left unstated.

A reading is a site (block, before or after the activation, branch output, residual stream), a position, what
activations are averaged over, how a neuron votes for its dominant mode, and how a rank is counted.
"""

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor

from grokscope.activations import RunStack
from grokscope.activations.conditioned import RunningMeans
from grokscope.errors import require
from grokscope.measures.control import control_basis
from grokscope.measures.question import Columns, Measure, Question
from grokscope.measures.rank import fourier_rank
from grokscope.measures.spectrum import Spectrum, mostly_varies, spectrum
from grokscope.measures.synchronization import fsd
from grokscope.model import site_names
from grokscope.shapes import Float
from grokscope.tasks import Task

__all__ = ["CONDITIONS", "ENTRIES", "POSITIONS", "RANKS", "SITES", "VOTES", "Reading", "all_readings", "fsd_by_votes"]

SITES = {  # in every block
    "pre": "mlp.hook_pre",
    "post": "mlp.hook_post",
    "mlp": "hook_mlp_out",
    "attention": "hook_attn_out",
    "residual": "hook_resid_post",
}
POSITIONS = {"read": -1, "first": 0}  # the separator, from which the answer is read, and a
CONDITIONS = ("answer", "a", "difference")  # the pairs with one answer, with one a, with one a − b
VOTES = ("one", "weighted", "sharp")
RANKS = ("power90", "power95", "amplitude90", "network90")
SHARP = 0.5  # of a neuron's power that its dominant mode must hold for the neuron to vote
BLOCKS = 2


@dataclass(frozen=True)
class Reading:
    """One choice of everything."""

    site: str
    """`post0`: a site of `SITES` with its block."""
    position: str
    """Of `POSITIONS`."""
    condition: str
    """Of `CONDITIONS`."""
    vote: str
    """`one`: each neuron has one vote; `weighted`: as much as it varies; `sharp`: one, for no mode unless one holds
    half of its power."""
    rank: str
    """`power90` is the paper's; the modes that hold .95, those that hold .90 of the amplitudes, or the modes that hold
    .90 of all neurons' power together."""

    @property
    def place(self) -> str:
        """Where and of what it is read, as columns begin."""
        return f"{self.site}.{self.position}.{self.condition}"

    @property
    def fsd_column(self) -> str:
        """Its FSD, among the columns of the measure `readings`."""
        return f"{self.place}.fsd_{self.vote}"

    @property
    def rank_column(self) -> str:
        """Its rank."""
        return f"{self.place}.rank_{self.rank}"

    @property
    def name(self) -> str:
        """All five choices.

        >>> all_readings()[0].name
        'pre0.read.answer.one.power90'
        """
        return f"{self.place}.{self.vote}.{self.rank}"


def all_readings() -> tuple[Reading, ...]:
    """Every combination; the paper's own is post0.read.answer.one.power90.

    >>> len(all_readings())
    720
    """
    return tuple(
        Reading(f"{site}{block}", position, condition, vote, rank)
        for block in range(BLOCKS)
        for site in SITES
        for position in POSITIONS
        for condition in CONDITIONS
        for vote in VOTES
        for rank in RANKS
    )


def fsd_by_votes(waves: Spectrum) -> dict[str, Float[Tensor, "*runs"]]:
    """FSD with each way of voting, (max_k par(k) − c) / (1 − c); NaN where most neurons are constant.

    par(k) is Σ_j w_j [k*_j = k] / Σ_j w_j with w_j = 1 (`one`) or the neuron's power (`weighted`); with `sharp`, as
    with `one`, but neurons whose strongest mode holds less than half of their power vote for no mode.

    >>> waves = Spectrum(torch.tensor([[9.0, 1.0, 0.0], [0.0, 1.1, 4.0]]), torch.ones(2), torch.zeros(3) > 0)
    >>> {vote: round(float(value), 2) for vote, value in fsd_by_votes(waves).items()}
    {'one': 0.33, 'weighted': 0.19, 'sharp': 0.33}
    """
    density, total = waves.density, waves.power.sum(dim=-2)
    modes = density.shape[-2]
    strongest = density.argmax(dim=-2)
    share = waves.power.gather(-2, strongest[..., None, :])[..., 0, :] / total
    responds = (total > 0).to(total)
    weights = {"weighted": (total, total), "sharp": (responds * (share >= SHARP), responds)}
    votes = torch.nn.functional.one_hot(strongest, modes).to(total)  # [*runs, neurons, modes]
    found = {"one": fsd(density).fsd}
    for vote, (weight, whole) in weights.items():
        participation = (votes * weight[..., None]).sum(dim=-2) / whole.sum(dim=-1, keepdim=True)
        value = (participation.amax(dim=-1) - 1 / modes) / (1 - 1 / modes)
        found[vote] = value.where(mostly_varies(waves.power), torch.nan)
    return found


def ranks(power: Float[Tensor, "*runs modes neurons"]) -> dict[str, Float[Tensor, "*runs"]]:
    """The rank by each way of counting; NaN where most neurons are constant."""
    whole = fourier_rank(power.sum(dim=-1, keepdim=True)).median
    return {
        "power90": fourier_rank(power).median,
        "power95": fourier_rank(power, 0.95).median,
        "amplitude90": fourier_rank(power.sqrt()).median,
        "network90": whole.where(mostly_varies(power), torch.nan),
    }


def conditions(task: Task) -> dict[str, np.ndarray]:
    """What activations are averaged over: for each row its answer, its a, and (a − b) mod n.

    >>> from grokscope.tasks import named_task
    >>> {name: values[8:11].tolist() for name, values in conditions(named_task("add_mod7")).items()}
    {'answer': [2, 3, 4], 'a': [1, 1, 1], 'difference': [0, 6, 5]}
    """
    a, b = task.inputs.T
    return {"answer": np.asarray(task.answers), "a": a, "difference": (a - b) % task.symbols}


def _columns(question: Question) -> Columns:
    """FSD by every vote and rank by every count, of every place; a place that the model does not have is left out."""
    stack = question.stack
    require(stack.task.symbols == stack.task.classes, "readings need as many answers as symbols", stack.task.name)
    basis, found = control_basis(stack.task), dict[str, Tensor]()
    for place, means in _means(stack).items():
        read = means.means()
        waves = spectrum(read.means, basis, read.mean_square)
        found |= {f"{place}.fsd_{vote}": value for vote, value in fsd_by_votes(waves).items()}
        found |= {f"{place}.rank_{count}": value for count, value in ranks(waves.power).items()}
    return found


def _means(stack: RunStack) -> Mapping[str, RunningMeans]:
    """The conditioned means of every place, by one pass over all rows."""
    known = site_names(stack.architecture)
    blocks = range(min(BLOCKS, stack.architecture.layers))
    sites = {f"{name}{block}": f"blocks.{block}.{site}" for block in blocks for name, site in SITES.items()}
    sites = {name: site for name, site in sites.items() if site in known}
    require(bool(sites), "readings are of a transformer's blocks, which this model does not have", stack.names[0])
    by = {name: torch.tensor(values, device=stack.device) for name, values in conditions(stack.task).items()}
    totals = {
        f"{site}.{position}.{name}": RunningMeans(stack.task.symbols, values)
        for site in sites
        for position in POSITIONS
        for name, values in by.items()
    }
    for rows, values in stack.parts(sites.values(), every_position=True):
        for name, site in sites.items():
            for position, place in POSITIONS.items():
                for condition in by:
                    totals[f"{name}.{position}.{condition}"].add(values[site][:, :, place], rows)
    return totals


ENTRIES = {
    "readings": Measure(
        title="FSD and rank by every reading",
        formula="FSD by three ways of voting and R̃ by four ways of counting, at 60 places: site, position, condition",
        source="ours: a multiverse analysis (Steegen et al. 2016) of the paper's Definitions 1 and 2",
        cost="one forward pass of all positions on all pairs, and 60 spectra",
        null="the same readings of untrained networks, at step 0",
        undefined="most neurons are constant over the condition",
        columns={
            "{pre,post,mlp,attention,residual}{0,1}.{read,first}.{answer,a,difference}.fsd_{one,weighted,sharp}": (
                "FSD of that place and vote"
            ),
            "{pre,post,mlp,attention,residual}{0,1}.{read,first}.{answer,a,difference}"
            ".rank_{power90,power95,amplitude90,network90}": "rank of that place by that count",
        },
        compute=_columns,
        needs=frozenset({"basis", "means", "pairs", "weights", "activations"}),
        headline="post0.read.answer.fsd_one",
    ),
}
