"""The catalogue's studies with what became of their runs: all that tables, figures and claims may look at."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from grokscope.errors import InputError, did_you_mean, shown
from grokscope.runs.records import RunRecord
from grokscope.studies.catalogue import STUDIES, Precision, quick_studies, studies

__all__ = ["Evidence", "evidence_of"]


@dataclass(frozen=True, eq=False)
class Evidence:
    """Records by study and by the run's name in it; runs that were not trained are missing, never made up."""

    records: Mapping[str, Mapping[str, RunRecord]]
    """Study → name → record."""
    planned: Mapping[str, int]
    """How many runs each study has in the catalogue, trained or not."""
    is_quick: bool = False
    """Whether the catalogue is the reduced one."""

    def stopped_early(self) -> list[str]:
        """The runs that were ended soon after grokking, so that a later crossing was not seen; in order."""
        return sorted(
            {name for runs in self.records.values() for name, one in runs.items() if one.outcome.stopped_early}
        )

    def study(self, name: str) -> Mapping[str, RunRecord]:
        """The records of a study, by name; empty if none of its runs was trained."""
        if name not in STUDIES:
            raise InputError(f"there is no study {shown(name)}{did_you_mean(name, STUDIES)}")
        return self.records.get(name, {})

    def task(self, name: str) -> dict[str, RunRecord]:
        """The base study's records of one task, `add_mod97`, by name."""
        return {key: record for key, record in self.study("base").items() if record.spec.task == name}


def evidence_of(
    records: Iterable[RunRecord], n_seeds: int | None = None, precision: Precision = "float32", quick: bool = False
) -> Evidence:
    """Records put where the catalogue (or its quick version) has them; one run may stand in several studies."""
    by_hash = {record.spec.content_hash: record for record in records}
    planned = quick_studies(precision) if quick else studies(STUDIES, n_seeds, precision)
    found = {
        study: {name: by_hash[spec.content_hash] for name, spec in runs.items() if spec.content_hash in by_hash}
        for study, runs in planned.items()
    }
    return Evidence(found, {study: len(runs) for study, runs in planned.items()}, quick)
