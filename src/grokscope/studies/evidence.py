"""A study's runs with what became of them: all that its quantities, and the cells that show them, come from."""

from collections.abc import Callable, Hashable, Iterable, Mapping
from dataclasses import dataclass, field
from math import isfinite, isnan
from pathlib import Path
from typing import Any

from grokscope.errors import InputError, did_you_mean, shown
from grokscope.runs.records import RunRecord
from grokscope.stats import Estimate
from grokscope.studies.estimand import Estimand, Sample
from grokscope.studies.quantity import Bound, Measured, Part, Quantity, Records
from grokscope.view.table import Cell, Value

__all__ = ["QUICK", "Evidence", "cell", "place_records"]

QUICK = "/quick"  # after a study's name in a membership: the reduced version, whose runs are others


@dataclass(frozen=True, eq=False)
class Evidence:
    """Records by experiment and by the run's name in it; runs that were not trained are missing, never made up."""

    records: Mapping[str, Records]
    """Experiment → name → record."""
    is_quick: bool = False
    """Whether they are of the study's reduced version."""
    unplaced: tuple[str, ...] = ()
    """Runs that belong to no experiment of the study, by name."""
    folder: Path | None = None
    """Where the records were read; what was measured beside the runs (speed) is there too."""
    _known: dict[Hashable, Any] = field(default_factory=dict, init=False, repr=False)
    """What was computed already, by identity."""

    def experiment(self, name: str) -> Records:
        """An experiment's records by name; empty if none was trained."""
        if name not in self.records:
            raise InputError(f"there is no experiment {shown(name)}{did_you_mean(name, self.records)}")
        return self.records[name]

    def measure(self, quantity: Quantity) -> Measured:
        """A quantity's value, computed once; missing where runs that it names are not there."""
        found: Measured = self.remember(quantity.identity, lambda: self._compute(quantity))
        return found

    def sample(self, estimand: Estimand) -> Sample:
        """What an estimand reads of every unit that is there, read once."""
        found: Sample = self.remember(("sample", *estimand.identity), lambda: estimand.sample(self.records))
        return found

    def remember(self, key: Hashable, compute: Callable[[], Any]) -> Any:
        """What was computed under this key before, or is now."""
        if key not in self._known:
            self._known[key] = compute()
        return self._known[key]

    def _compute(self, quantity: Quantity) -> Measured:
        if quantity.members:
            measured = {name: self.measure(member) for name, member in quantity.members.items()}
            return quantity.function(measured, **quantity.options)
        found, needed = len(quantity.runs.select(self.records)), len(quantity.runs.names)
        if found < max(1, needed):
            return Measured.lacking(found, max(1, needed), f"runs ({quantity.runs.describe()})")
        return quantity.compute(self.records)

    def stopped_early(self) -> list[str]:
        """The runs that were ended soon after grokking, so that a later crossing was not seen; in order."""
        return sorted(
            {name for runs in self.records.values() for name, one in runs.items() if one.outcome.stopped_early}
        )


def place_records(
    study: str, experiments: Iterable[str], records: Iterable[RunRecord], folder: Path | None = None
) -> Evidence:
    """Records under the experiments they were made for; the quick version only where nothing else is there.

    A run may belong to several experiments. Records that name no study are rejected: nothing is guessed from seeds.
    """
    found = list(records)
    if found and not any(record.made_for for record in found):
        raise InputError(
            "these runs were trained for no study, or grokscope 0.1.0 packed them: it did not store the study, and "
            "reads its own records"
        )
    full = {member.study for record in found for member in record.made_for}
    is_quick = study not in full and study + QUICK in full
    wanted = study + QUICK if is_quick else study
    placed: dict[str, dict[str, RunRecord]] = {experiment: {} for experiment in experiments}
    own = [[one for one in record.made_for if one.study == wanted and one.experiment in placed] for record in found]
    for record, members in zip(found, own, strict=True):
        for member in members:
            former = placed[member.experiment].setdefault(member.name, record)
            if former.spec.content_hash != record.spec.content_hash:
                raise InputError(
                    f"{former.name} and {record.name} were both made as {member.name} of {member.experiment} in "
                    f"{study}: read them separately"
                )
    unplaced = sorted(record.name for record, members in zip(found, own, strict=True) if not members)
    return Evidence(placed, is_quick, tuple(unplaced), folder)


def cell(
    evidence: Evidence,
    quantity: Quantity,
    part: str = "value",
    reported: Value = None,
    reported_interval: tuple[float | int, float | int] | None = None,
) -> Cell:
    """A part of a quantity as a cell; empty where its runs are missing or it is undefined.

    >>> from grokscope.runs.outcome import RunOutcome
    >>> from grokscope.specs import RunSpec
    >>> from grokscope.studies.selection import Selection
    >>> def count_runs(runs):
    ...     return Measured.of(len(runs))
    >>> quantity = Quantity("number of runs", Selection(("base",)), count_runs)
    >>> evidence = Evidence({"base": {"first": RunRecord(RunSpec(), RunOutcome(), {}, {})}})
    >>> cell(evidence, quantity, reported=2).ours
    1
    """
    value, interval, n = _shown(evidence.measure(quantity).parts.get(part))
    return Cell(value, reported, interval, n, reported_interval, quantity.key if value is not None else "")


def _shown(found: Part) -> tuple[Value, tuple[float, float] | None, int | None]:
    """Value, interval and n; an estimate that is infinite was never reached, and its interval may be open."""
    if isinstance(found, Estimate):
        known = not isnan(found.low) and not isnan(found.high)
        return (
            (found.value if isfinite(found.value) else "never"),
            (float(found.low), float(found.high)) if known else None,
            found.items,
        )
    if isinstance(found, Bound):
        return str(found), None, found.items
    if isinstance(found, float) and isnan(found):
        return None, None, None
    return found, None, None
