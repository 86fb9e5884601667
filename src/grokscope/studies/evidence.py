"""A study's runs with what became of them: all that its quantities are computed from."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path

from grokscope.errors import InputError, did_you_mean, shown
from grokscope.runs.records import RunRecord
from grokscope.studies.quantity import Measured, Quantity
from grokscope.studies.selection import Selection

__all__ = ["QUICK", "Evidence", "place_records"]

QUICK = "/quick"  # after a study's name in a membership: the reduced version, whose runs are others


@dataclass(frozen=True, eq=False)
class Evidence:
    """Records by experiment and by the run's name in it; runs that were not trained are missing, never made up."""

    records: Mapping[str, Mapping[str, RunRecord]]
    """Experiment → name → record."""
    is_quick: bool = False
    """Whether they are of the study's reduced version."""
    unplaced: tuple[str, ...] = ()
    """Runs that belong to no experiment of the study, by name."""
    folder: Path | None = None
    """Where the records were read; what was measured beside the runs (speed) is there too."""
    _measured: dict[tuple[str, Selection], Measured] = field(default_factory=dict, init=False, repr=False)
    """Quantities that were computed already, by key and runs: the key of many named runs only counts them."""

    def experiment(self, name: str) -> Mapping[str, RunRecord]:
        """An experiment's records by name; empty if none was trained."""
        if name not in self.records:
            raise InputError(f"there is no experiment {shown(name)}{did_you_mean(name, self.records)}")
        return self.records[name]

    def measure(self, quantity: Quantity) -> Measured:
        """A quantity's value, computed once; missing where runs that it names are not there."""
        key = quantity.key, quantity.runs
        if key not in self._measured:
            self._measured[key] = self._compute(quantity)
        return self._measured[key]

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
            "these records do not say which study they were made for: grokscope 0.1.0 wrote them, and reads them"
        )
    full = {member.study for record in found for member in record.made_for}
    is_quick = study not in full and study + QUICK in full
    wanted = study + QUICK if is_quick else study
    placed: dict[str, dict[str, RunRecord]] = {experiment: {} for experiment in experiments}
    unplaced = []
    for record in found:
        own = [one for one in record.made_for if one.study == wanted and one.experiment in placed]
        for member in own:
            placed[member.experiment][member.name] = record
        if not own:
            unplaced.append(record.name)
    return Evidence(placed, is_quick, tuple(sorted(unplaced)), folder)
