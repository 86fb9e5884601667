"""What can be asked for by name: tables, figures, answers and studies, and the studies whose runs each needs."""

from collections.abc import Iterable

from grokscope.errors import InputError, did_you_mean, shown
from grokscope.studies.synchronization.experiments import STUDIES

__all__ = ["ITEMS", "studies_of"]

ITEMS: dict[str, tuple[str, ...]] = {
    "tab-configs": ("base",),
    "tab-cross": ("base", "multiplication"),
    "tab-exloss": ("base",),
    "tab-wd": ("fork",),
    "tab-rank": ("base",),
    "tab-kan": ("base",),
    "tab-ablation": ("base",),
    "tab-arch": ("architecture",),
    "tab-timing": ("fork", "spread"),
    "tab-crossprime": ("crossprime",),
    "tab-transfer": ("symmetric",),
    "fig-exloss": ("base",),
    "fig-two-phase": ("base",),
    "fig-wd": ("fork",),
    "fig-memorisation": ("base",),
    "fig-arch": ("architecture",),
    "fig-crossprime": ("crossprime",),
    "fig-threshold": ("crossprime", "threshold"),
    "fig-accelerator": ("accelerator",),
    "fig-transfer": ("symmetric",),
    "ans-lead-share": ("base", "symmetric", "open_questions"),
    "ans-false-alarms": ("base", "negatives"),
    "ans-law": ("crossprime", "open_questions"),
    "ans-multiplication": ("base", "multiplication"),
    "ans-s5-false": ("symmetric",),
    "ans-sensitivity": ("sensitivity",),
    "ans-thresholds-mechanism": ("threshold",),
}


def studies_of(items: Iterable[str], without: Iterable[str] = ()) -> tuple[str, ...]:
    """The studies behind these items, in the catalogue's order; `all` is every one.

    >>> studies_of(["tab-wd", "fig-transfer"])
    ('fork', 'symmetric')
    """
    known = {"all": tuple(STUDIES), **ITEMS, **{name: (name,) for name in STUDIES}}
    for name in (*items, *without):
        if name not in known:
            raise InputError(f"there is nothing called {shown(name)} to reproduce{did_you_mean(name, known)}")
    left_out = {study for name in without for study in known[name]}
    wanted = {study for name in items for study in known[name]} - left_out
    return tuple(study for study in STUDIES if study in wanted)
