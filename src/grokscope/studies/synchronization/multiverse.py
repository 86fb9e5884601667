"""Every reading in every set-up: how far from Tables 5 and 2 it is, and which headline claims hold there.

The distance was fixed before any of these runs: D = √((D₅² + D₂²) / 2). D₅ is the mean over seeds of the root mean
square, over the nine rows of Table 5, of log₂(rank / reported rank), in doublings. D₂ is the Wasserstein distance
between the leads of our seeds and the five of Table 2 at p = 97, in thousands of steps.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from grokscope.measures.readings import Reading, all_readings
from grokscope.runs.records import RunRecord
from grokscope.shapes import Float, Int
from grokscope.studies.quantity import Records
from grokscope.studies.selection import configuration
from grokscope.studies.synchronization.reported import CROSS, RANK
from grokscope.timeline import first_step

__all__ = ["CLAIMS", "SetUp", "Universe", "read_set_ups", "universes"]

CADENCE = 500  # steps, of the paper's checkpoints
SYNC = 0.80  # FSD that counts as synchronised
GROKKED = 0.95
WHITE = 29.0  # the rank of white noise at p = 97, for readings that are undefined
NEVER = -1.0  # a lead that is known to be negative and not how much
QUANTILES = 160  # of which both 32 and 5 are divisors: the Wasserstein distance is exact
AT = 1000  # the step of the paper's fork, where FSD is reported as 0.84
ALL_RUNS, MOST_RUNS = 0.9, 0.5  # "in all nine", with one in ten to spare; "the rank falls to 1 first"
LEADS = (1111.0, 2333.0)  # the paper's interval of the mean lead

REPORTED_RANKS = {int(step): float(RANK.get(step, "rank") or 0) for step in RANK.rows}
REPORTED_LEADS = tuple(float(CROSS.get(f"add_mod97_s{seed}", "lead") or 0) for seed in (42, 0, 1, 2, 123))

CLAIMS = {
    "precedes": f"FSD crosses {SYNC:g} before grokking in at least {ALL_RUNS:.0%} of the runs that grok",
    "early": f"median FSD at step {AT:,} is at least {SYNC:g}",
    "rank one": f"the rank falls to 1 at a checkpoint before grokking in at least {MOST_RUNS:.0%} of them",
    "lead": f"the mean lead lies in [{LEADS[0]:,.0f}, {LEADS[1]:,.0f}] steps, the paper's interval",
}


@dataclass(frozen=True)
class Universe:
    """One reading in one set-up."""

    reading: Reading
    """How FSD and rank are read."""
    set_up: str
    """How the runs are trained, as the experiment calls it."""
    distance: float
    """D."""
    rank_distance: float
    """D₅, in doublings."""
    lead_distance: float
    """D₂, in thousands of steps."""
    untrained: float
    """D of the same reading with the networks as they were drawn: its value at step 0 at every step."""
    effects: Mapping[str, float]
    """What each claim is about: share of positive leads, FSD at step 1,000, share with rank 1 first, mean lead."""
    holds: Mapping[str, bool]
    """Whether each claim holds."""


@dataclass(frozen=True, eq=False)
class SetUp:
    """The runs of one set-up as arrays: every FSD and every rank, over seeds and checkpoints; NaN where undefined."""

    name: str
    """As the experiment calls it."""
    grok: Float[np.ndarray, " runs"]
    """Grok step at the paper's cadence; infinite for a run that did not grok."""
    steps: Int[np.ndarray, " steps"]
    """Checkpoints, from 0."""
    fsd_columns: tuple[str, ...]
    """Of which column each FSD is."""
    fsd: Float[np.ndarray, "fsds runs steps"]
    """Each FSD."""
    rank_columns: tuple[str, ...]
    """Of which column each rank is."""
    rank: Float[np.ndarray, "ranks runs steps"]
    """Each rank."""

    @cached_property
    def leads(self) -> Float[np.ndarray, "fsds runs"]:
        """Grok step less crossing, NaN of a run that did not grok.

        Where FSD had not crossed at the last reading, it is a bound. The first checkpoint that counts is the paper's
        first, step 500.
        """
        return self._leads(self.fsd)

    def _leads(self, fsd: Float[np.ndarray, "fsds runs steps"]) -> Float[np.ndarray, "fsds runs"]:
        later = self.steps > 0
        crossed = fsd[..., later] >= SYNC
        sync = np.where(crossed.any(axis=-1), self.steps[later][crossed.argmax(axis=-1)], np.inf)
        bound = np.minimum(self.grok - self.steps[-1] - CADENCE, NEVER)
        known = np.where(np.isinf(sync), bound, self.grok - np.where(np.isinf(sync), 0, sync))
        return np.where(np.isinf(self.grok), np.nan, known)

    @cached_property
    def early(self) -> Float[np.ndarray, "fsds runs"]:
        """FSD at the step of the paper's fork."""
        return self.fsd[..., int(np.flatnonzero(self.steps == AT)[0])]

    @cached_property
    def is_one(self) -> Float[np.ndarray, "ranks runs"]:
        """Whether the rank was 1 at a checkpoint before grokking; NaN of a run that did not grok."""
        before = (self.steps > 0) & (self.steps < self.grok[:, None])
        return np.where(np.isinf(self.grok), np.nan, ((self.rank <= 1) & before).any(axis=-1))

    @cached_property
    def lead_distances(self) -> tuple[Float[np.ndarray, " fsds"], Float[np.ndarray, " fsds"]]:
        """D₂ = ∫ |Q(u) − Q_reported(u)| du / 1,000 of the quantile functions of leads; and of untrained networks."""
        drawn = np.repeat(self.fsd[..., :1], len(self.steps), axis=-1)
        return tuple(np.array([_lead_distance(own) for own in leads]) for leads in (self.leads, self._leads(drawn)))  # type: ignore[return-value]

    @cached_property
    def rank_distances(self) -> tuple[Float[np.ndarray, " ranks"], Float[np.ndarray, " ranks"]]:
        """D₅ = mean over runs of √mean over rows of log₂(rank / reported)²; and of untrained networks."""
        places = [int(np.flatnonzero(self.steps == step)[0]) for step in REPORTED_RANKS]
        reported = np.log2([*REPORTED_RANKS.values()])

        def distance(rank: np.ndarray) -> np.ndarray:
            away = np.log2(np.nan_to_num(rank, nan=WHITE)) - reported
            return np.sqrt((away**2).mean(axis=-1)).mean(axis=-1)

        return distance(self.rank[..., places]), distance(np.repeat(self.rank[..., :1], len(places), axis=-1))

    def effects(self, runs: Int[np.ndarray, " chosen"] | None = None) -> dict[str, np.ndarray]:
        """What each claim is about: of every FSD, or every rank, over all runs or a draw of them; NaN if undefined."""
        chosen = np.arange(len(self.grok)) if runs is None else runs
        leads = self.leads[:, chosen]
        return {
            "precedes": _mean(np.where(np.isnan(leads), np.nan, leads > 0)),
            "early": _median(self.early[:, chosen]),
            "rank one": _mean(self.is_one[:, chosen]),
            "lead": _mean(leads),
        }

    @cached_property
    def pairs(self) -> tuple[tuple[Reading, int, int], ...]:
        """Every reading that the set-up has, with the places of its FSD and of its rank."""
        fsds, ranks = ({name: i for i, name in enumerate(names)} for names in (self.fsd_columns, self.rank_columns))
        return tuple(
            (one, fsds[one.fsd_column], ranks[one.rank_column])
            for one in all_readings()
            if one.fsd_column in fsds and one.rank_column in ranks
        )

    def holding(self, runs: Int[np.ndarray, " chosen"] | None = None) -> dict[str, np.ndarray]:
        """Whether each claim holds in each reading, over all runs or a draw of them."""
        places = np.array([(fsd, rank) for _, fsd, rank in self.pairs])
        effects = self.effects(runs)
        return judged({name: effects[name][places[:, 1 if name == "rank one" else 0]] for name in CLAIMS})


def _lead_distance(leads: Float[np.ndarray, " runs"]) -> float:
    """The Wasserstein distance to the reported leads, in thousands of steps; infinite where no run grokked."""
    known = leads[~np.isnan(leads)]
    if not len(known):
        return float("inf")
    at = (np.arange(QUANTILES) + 0.5) / QUANTILES
    ours, theirs = (np.quantile(values, at, method="inverted_cdf") for values in (known, REPORTED_LEADS))
    return float(np.abs(ours - theirs).mean() / 1000)


def _mean(values: Float[np.ndarray, "columns runs"]) -> Float[np.ndarray, " columns"]:
    """The mean of what is known; NaN where nothing is."""
    count = (~np.isnan(values)).sum(axis=1)
    return np.where(count, np.nansum(values, axis=1) / np.maximum(count, 1), np.nan)


def _median(values: Float[np.ndarray, "columns runs"]) -> Float[np.ndarray, " columns"]:
    """The median, with what is undefined as 0: a reading that is undefined in most runs has not synchronised."""
    return np.median(np.nan_to_num(values, nan=0.0), axis=1)


def judged(effects: Mapping[str, np.ndarray]) -> dict[str, np.ndarray]:
    """Whether each claim holds, by its effect; an effect that is undefined holds nothing.

    >>> effects = {"precedes": 0.9, "early": 0.5, "rank one": 0.5, "lead": 2400.0}
    >>> {name: bool(holds[0]) for name, holds in judged({name: np.array([x]) for name, x in effects.items()}).items()}
    {'precedes': True, 'early': False, 'rank one': True, 'lead': False}
    """
    return {
        "precedes": effects["precedes"] >= ALL_RUNS,
        "early": effects["early"] >= SYNC,
        "rank one": effects["rank one"] >= MOST_RUNS,
        "lead": (effects["lead"] >= LEADS[0]) & (effects["lead"] <= LEADS[1]),
    }


def read_set_ups(records: Records) -> list[SetUp]:
    """The runs that were read in every way, by set-up, as arrays; those that lack a row of Table 5 are left out."""
    found: dict[str, list[RunRecord]] = {}
    for name, record in records.items():
        is_read = any(column.endswith(".fsd_one") for column in record.checkpoints)
        if is_read and {0, *REPORTED_RANKS} <= set(record.checkpoints["step"]):
            found.setdefault(configuration(name), []).append(record)
    return [_as_arrays(name, own) for name, own in found.items()]


def universes(set_up: SetUp) -> list[Universe]:
    """Every reading that this set-up has, with its distance and its claims."""
    effects, holds = set_up.effects(), set_up.holding()
    (leads, drawn_leads), (ranks, drawn_ranks) = set_up.lead_distances, set_up.rank_distances
    return [
        Universe(
            reading,
            set_up.name,
            _joined(ranks[rank], leads[fsd]),
            float(ranks[rank]),
            float(leads[fsd]),
            _joined(drawn_ranks[rank], drawn_leads[fsd]),
            {name: float(values[rank if name == "rank one" else fsd]) for name, values in effects.items()},
            {name: bool(values[i]) for name, values in holds.items()},
        )
        for i, (reading, fsd, rank) in enumerate(set_up.pairs)
    ]


def _joined(rank_distance: float, lead_distance: float) -> float:
    return float(np.sqrt((rank_distance**2 + lead_distance**2) / 2))


def _as_arrays(name: str, records: list[RunRecord]) -> SetUp:
    steps = sorted({int(step) for record in records for step in record.checkpoints["step"] if step % CADENCE == 0})
    steps = [step for step in steps if step <= max(REPORTED_RANKS)]

    def arrays(names: Iterable[str]) -> tuple[tuple[str, ...], np.ndarray]:
        known = tuple(one for one in dict.fromkeys(names) if any(one in record.checkpoints for record in records))
        values = [[_column(record, column, steps) for record in records] for column in known]
        return known, np.array(values).reshape(len(known), len(records), len(steps))

    readings = all_readings()
    return SetUp(
        name,
        np.array([_grokked(record) for record in records]),
        np.array(steps),
        *arrays(one.fsd_column for one in readings),
        *arrays(one.rank_column for one in readings),
    )


def _column(record: RunRecord, column: str, steps: list[int]) -> list[float]:
    own = record.checkpoints
    values = dict(zip(own["step"], own.get(column, [float("nan")] * len(own["step"])), strict=True))
    return [float(values.get(step, float("nan"))) for step in steps]


def _grokked(record: RunRecord) -> float:
    """When a run grokked, seen as the paper sees it."""
    seen = record.seen_every(CADENCE).evaluations
    step = first_step([int(step) for step in seen["step"]], seen["validation_accuracy"], GROKKED)
    return float("inf") if step is None else float(step)
