"""Leads, false alarms and concordance of planted runs, against counts by hand and loops."""

from itertools import combinations
from math import inf

import numpy as np
import pytest
from signal_runs import SEEDS, Planted, after, world

from grokscope.forecast.benchmark.ranking import concordance as benchmark_concordance
from grokscope.forecast.cases import usable_cases
from grokscope.stats import Estimate, share
from grokscope.studies import Evidence, Measured
from grokscope.studies.signals.experiments import FAMILIES
from grokscope.studies.signals.quantities import (
    RATE,
    alarms,
    best_early,
    concordance,
    median_grok,
    more_than_loss,
)

DRAW = np.random.default_rng(0)
PEAKS = DRAW.uniform(0, 0.6, size=64)
GROKS = 100 * DRAW.integers(20, 50, size=64)
ONE = ("one layer",)


def of_one_layer(crossing: int = 500, peaks: np.ndarray = PEAKS, late: float = 0.0) -> Evidence:
    """FSD of 0.9 so many steps before grokking; runs that cannot grok peak early, or late where that is given."""

    def of_shuffled(seed: int) -> Planted:
        return {"fsd": lambda at: late if at > GROKS[seed] else float(peaks[seed]) * (at == 300)}

    return world(
        one_layer=lambda seed: {"grok": int(GROKS[seed]), "fsd": after(int(GROKS[seed]) - crossing, 0.9, 0.05)},
        shuffled_one_layer=of_shuffled,
    )


def measured(evidence: Evidence, signal: str = "fsd", families: tuple[str, ...] = ONE) -> Measured:
    return evidence.measure(alarms(signal, families))


def test_leads_and_false_alarms_at_the_published_threshold() -> None:
    found = measured(of_one_layer(peaks=np.where(np.arange(64) < 6, 0.85, 0.1)))
    assert found.parts["published share"] == share(SEEDS, SEEDS)
    assert found.number("published lead") == 500
    assert found.parts["published false"] == share(6, SEEDS)
    assert found.number("published runs") == SEEDS


def test_a_signal_that_comes_after_does_not_lead_and_one_that_never_comes_has_no_median() -> None:
    late = measured(of_one_layer(crossing=-300))
    assert (late.number("published share"), late.number("published lead")) == (0, -300)
    never = measured(of_one_layer(crossing=-9000))
    assert never.number("published share") == 0
    assert never.number("published lead") == -inf


def test_the_matched_threshold_lets_five_percent_of_the_even_seeds_pass() -> None:
    """Of twelve even seeds none may, so it is their highest; of the odd ones those pass that are above."""
    found = measured(of_one_layer())
    even, odd = PEAKS[:SEEDS:2], PEAKS[1:SEEDS:2]
    assert int(RATE * len(even)) == 0
    assert found.number("threshold") == even.max()
    assert found.number("matched false") == np.mean(odd > even.max())
    assert found.number("matched share") == 1


def test_what_happens_after_the_run_of_the_same_seed_has_grokked_is_no_false_alarm() -> None:
    early, late = measured(of_one_layer()), measured(of_one_layer(late=0.95))
    for part in ("threshold", "matched false", "published false"):
        assert late.number(part) == early.number(part)


def test_a_seed_without_a_partner_is_watched_as_long_as_another() -> None:
    """Half of the runs do not grok; all that cannot are watched all the same."""
    found = world(
        one_layer=lambda seed: {"grok": 3000 if seed % 2 else None, "fsd": 0.1},
        shuffled_one_layer=lambda seed: {"fsd": after(3000, 0.9, 0.1)},
    ).measure(alarms("fsd", ONE))
    assert found.parts["published false"] == share(0, SEEDS)
    assert found.number("published runs") == SEEDS // 2


@pytest.mark.parametrize("change", [lambda x: x**3 + 2 * x, lambda x: np.log(x + 1), lambda x: 7 * x])
def test_no_rising_function_of_a_signal_changes_what_is_found_at_matched_thresholds(change: object) -> None:
    plain = world(
        one_layer=lambda seed: {"grok": int(GROKS[seed]), "validation_loss": lambda at: 9 - at / GROKS[seed]},
        shuffled_one_layer=lambda seed: {"validation_loss": lambda at: 9 - PEAKS[seed] * at / 4000},
    )
    other = world(
        one_layer=lambda seed: {"grok": int(GROKS[seed]), "validation_loss": lambda at: change(9 - at / GROKS[seed])},
        shuffled_one_layer=lambda seed: {"validation_loss": lambda at: change(9 - PEAKS[seed] * at / 4000)},
    )
    one, two = (measured(evidence, "validation-loss") for evidence in (plain, other))
    for part in ("matched share", "matched lead", "matched false"):
        assert one.parts[part] == two.parts[part], part
    for at in (0.25, 0.5):
        quantity = concordance("validation-loss", at, ONE)
        assert plain.measure(quantity).parts == other.measure(quantity).parts


def test_families_are_pooled_each_with_its_own_threshold() -> None:
    both = world(
        one_layer=lambda seed: {"grok": 3000, "norm": after(2000, 10.0, 50.0)},
        shuffled_one_layer=lambda seed: {"norm": 40.0 + seed / 10},
        parity=lambda seed: {"grok": 4000, "norm": after(3500, 3.0, 9.0)},
        shuffled_parity=lambda seed: {"norm": 4.0 + seed / 10},
    )
    apart = [both.measure(alarms("norm", (name,))) for name in ("one layer", "parity")]
    assert [one.number("threshold") for one in apart] == [40.0, 4.0], "the lowest of the even seeds"
    assert [one.number("matched lead") for one in apart] == [1000, 500]
    pooled = both.measure(alarms("norm"))
    assert pooled.parts["matched share"] == share(2 * SEEDS, 2 * SEEDS)
    assert pooled.number("matched lead") == 750
    assert "threshold" not in {name for name, part in pooled.parts.items() if part is not None}


# Which run groks sooner.


def with_signal(values: np.ndarray, ends: np.ndarray = GROKS) -> Evidence:
    return world(one_layer=lambda seed: {"grok": int(ends[seed]), "rank": float(values[seed])})


def by_loop(values: np.ndarray, ends: np.ndarray, share_of: float) -> float:
    """Of every pair, one by one; the rank warns by falling."""
    right = known = 0.0
    kept = [seed for seed in range(SEEDS) if ends[seed] > share_of * np.median(ends[:SEEDS])]
    for one, other in combinations(kept, 2):
        if ends[one] != ends[other]:
            sooner, later = (one, other) if ends[one] < ends[other] else (other, one)
            known += 1
            right += 1.0 if values[sooner] < values[later] else 0.5 if values[sooner] == values[later] else 0.0
    return right / known


@pytest.mark.parametrize("at", [0.25, 0.5])
def test_concordance_is_a_loop_over_pairs_and_that_of_the_benchmark(at: float) -> None:
    values = DRAW.integers(1, 8, size=64).astype(float)
    evidence = with_signal(values)
    found = evidence.measure(concordance("rank", at, ONE))
    assert found.number() == pytest.approx(by_loop(values, GROKS, at))
    assert found.n == SEEDS
    records = [*evidence.experiment("groks").values()]
    cases = usable_cases([(one.spec, one.evaluations) for one in records])
    keys = [(-values[one.spec.seeds.split], 0.0) for one in records]
    right, known = benchmark_concordance(cases, keys)
    assert found.number() == pytest.approx(right / known)


def test_the_ends_of_concordance_and_its_interval() -> None:
    best, worst, flat = (
        with_signal(values).measure(concordance("rank", 0.5, ONE)).parts["value"]
        for values in (GROKS.astype(float), -GROKS.astype(float), np.ones(64))
    )
    for found, value in ((best, 1.0), (worst, 0.0), (flat, 0.5)):
        assert isinstance(found, Estimate)
        assert (found.value, found.low, found.high) == (value, value, value)
    noisy = with_signal(GROKS + DRAW.normal(0, 900, size=64)).measure(concordance("rank", 0.5, ONE)).parts["value"]
    assert isinstance(noisy, Estimate)
    assert noisy.low < noisy.value < noisy.high <= 1


def test_a_signal_is_read_before_the_share_of_the_median_and_not_later() -> None:
    ends = np.full(64, 4000) + 100 * np.arange(64)
    evidence = world(
        one_layer=lambda seed: {"grok": int(ends[seed]), "rank": lambda at: float(seed) if at > 1300 else 5.0}
    )
    assert evidence.measure(concordance("rank", 0.25, ONE)).number() == 0.5, "read at 1,287, where all are alike"
    assert evidence.measure(concordance("rank", 0.5, ONE)).number() == 1.0


def test_a_cell_whose_median_run_does_not_grok_has_no_concordance() -> None:
    evidence = world(one_layer=lambda seed: {"grok": 3000 if seed < 5 else None, "rank": 3.0})
    assert evidence.measure(concordance("rank", 0.5, ONE)).missing


def test_the_median_grok_step_counts_runs_that_did_not_as_later() -> None:
    found = world(one_layer=lambda seed: {"grok": 2000 if seed < 20 else None}).measure(median_grok("one-layer"))
    assert (found.number(), found.parts["grokked"], found.n) == (2000, 20, SEEDS)


# Comparisons.


def rivals(fsd_crosses: bool, seeds_with_loss: int = SEEDS) -> Evidence:
    return world(
        one_layer=lambda seed: {
            "grok": 3000,
            "fsd": after(2000 if fsd_crosses else None, 0.9, 0.1),
            "validation_loss": after(2500 if seed < seeds_with_loss else None, 1.0, 9.0),
        },
        shuffled_one_layer=lambda seed: {"fsd": 0.1, "validation_loss": 9.0},
    )


def test_a_signal_beats_the_loss_if_it_leads_in_clearly_more_runs() -> None:
    assert rivals(True, 4).measure(more_than_loss()).number() == 1
    assert rivals(True, 4).measure(more_than_loss()).text == "fsd"
    assert rivals(True).measure(more_than_loss()).number() == 0, "both lead in all"
    assert rivals(False).measure(more_than_loss()).number() == 0


def test_the_best_of_each_tier_are_compared() -> None:
    evidence = world(
        one_layer=lambda seed: {"grok": int(GROKS[seed]), "norm": float(GROKS[seed]), "validation_loss": 1.0}
    )
    assert evidence.measure(best_early()).number() == pytest.approx(0.5)
    assert "norm 1.00" in evidence.measure(best_early()).text


def test_nothing_is_said_without_runs() -> None:
    empty = world()
    assert all(empty.measure(alarms("fsd", (name,))).missing for name in FAMILIES)
    assert empty.measure(more_than_loss()).missing
    assert empty.measure(best_early()).missing
    assert empty.measure(concordance("fsd", 0.5)).missing
