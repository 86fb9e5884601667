"""What the sections about forks share: Δt from either start, laws by name, and evidence of which much is missing."""

from planted import evidence

from grokscope.studies.synchronization import (
    accelerator,
    censored_law,
    crossprime,
    intervention,
    norm_interventions,
    sensitivity,
    threshold,
    timing_law,
)
from grokscope.studies.synchronization.forks import law, times_to_grok

SECTIONS = (
    intervention,
    timing_law,
    crossprime,
    censored_law,
    threshold,
    norm_interventions,
    accelerator,
    sensitivity,
)
CLAIMS = [claim for section in SECTIONS for claim in getattr(section, "CLAIMS", ())]


def test_times_are_from_the_fork_or_from_the_crossing() -> None:
    runs = {
        "add_mod97_d42_x1": {"grok": 3000, "sync": 1500, "last": 9000},
        "add_mod97_d0_x1": {"grok": 4000, "sync": None, "last": 9000},
    }
    found, chosen = evidence("crossprime", runs), crossprime.forks("add_mod97", 1.0)
    fork, crossing = (found.measure(times_to_grok(chosen, start=start)) for start in ("fork", "FSD crossing"))
    assert (fork.number("mean"), fork.n) == (2500, 2)
    assert (crossing.number("mean"), crossing.n) == (1500, 1)
    assert found.measure(times_to_grok(chosen, needed=5)).missing == "2 of the 5 forks that it needs are there."
    assert found.measure(times_to_grok(chosen, needed=5)).number("mean") == 2500


def test_without_a_fork_that_groks_there_is_no_law() -> None:
    found = evidence("crossprime", {"add_mod97_d42_x1": {"grok": None, "last": 9000}})
    measured = found.measure(law(crossprime.forks("add_mod97")))
    assert (measured.parts, measured.text, measured.missing) == ({}, "none grokked", "")
