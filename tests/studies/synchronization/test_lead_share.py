"""Shares of positive leads against counts, exact intervals and scipy; what pairs at random would give."""

from functools import partial
from typing import Any

import built
import numpy as np
import pytest
import scipy.stats
from built import sentence
from exact import holm, same_share
from planted import EMPTY, evidence, together

from grokscope.studies.synchronization.experiments import EXPERIMENTS
from grokscope.view.table import Cell

table = partial(built.table, "sup-lead-share")

SEEDS = 24
Steps = list[tuple[int | None, int | None]]


def leads(task: str, steps: Steps) -> dict[str, dict[str, Any]]:
    """Runs (grok, sync) of one task, by seed."""
    names = [name for name in EXPERIMENTS["base"](SEEDS, "float32") if name.startswith(f"{task}_s")]
    return {name: {"grok": grok, "sync": sync} for name, (grok, sync) in zip(names, steps, strict=False)}


def test_lead_shares_are_counts_with_exact_intervals() -> None:
    generator = np.random.default_rng(1)
    pairs = [(3000 + 100 * int(g), 2000 + 100 * int(s)) for g, s in generator.integers(0, 12, (16, 2))]
    steps: Steps = [*pairs, (2500, 2500), (2000, 2600), (None, 1000)]
    other: Steps = [(3000, 1000)] * 8
    found = table(evidence("base", leads("add_mod97", steps) | leads("add_mod53", other), SEEDS))
    values = [grok - sync for grok, sync in steps if grok is not None and sync is not None]
    positive, negative = sum(lead > 0 for lead in values), sum(lead < 0 for lead in values)
    row = "add_mod97"
    assert found.cell(row, "Seeds").ours == len(steps) == 19
    same_share(found.cell(row, "Grokked"), 18, 19)
    same_share(found.cell(row, "Positive lead"), positive, 18)
    assert found.cell(row, "Ties").ours == len(values) - positive - negative >= 1
    mean, median = found.cell(row, "Mean lead (steps)"), found.cell(row, "Median lead (steps)")
    assert mean.ours == pytest.approx(np.mean(values))
    assert median.ours == np.median(values)
    resampled = generator.choice(values, (20_000, len(values)))
    for cell, of in ((mean, np.mean), (median, np.median)):
        assert cell.interval == pytest.approx(np.quantile(of(resampled, axis=1), [0.025, 0.975]), abs=60)
    p_values = [scipy.stats.binomtest(8, 8).pvalue, scipy.stats.binomtest(positive, positive + negative).pvalue]
    assert [found.cell(name, "Sign-test p").ours for name in ("add_mod53", row)] == pytest.approx(p_values)
    assert [found.cell(name, "Holm-adjusted p").ours for name in ("add_mod53", row)] == pytest.approx(holm(p_values))
    assert found.cell("add_mod71", "Seeds").ours == "no runs"


def test_the_sentence_names_every_prime_and_what_is_doubtful() -> None:
    seeds = (42, 0, 1, 2, 3)
    runs = {f"add_mod{p}_s{s}": {"grok": 3000, "sync": 2000 if p < 100 else 4000} for p in (53, 131) for s in seeds}
    groups = {f"S5_f0.7_s{seed}": {"grok": 3000, "sync": 0} for seed in (0, 1, 42)}
    found = sentence(table(together(evidence("base", runs, 5), evidence("symmetric", groups, 5))))
    assert "add_mod53 1.00 [0.48, 1.00], n = 5 (1.00, n = 5) and add_mod131 0.00" in found
    assert found.endswith(
        "other tasks: S5_f0.7 1.00 [0.29, 1.00], n = 3 (1.00, n = 3), with doubtful crossings in 3, n = 3."
    )


def test_crossings_paired_at_random_lead_as_often_as_a_count_over_pairs_says() -> None:
    steps: Steps = [(3000, 2000), (2500, 2400), (2000, 1900), (4000, None)]
    found = table(evidence("base", leads("add_mod97", steps), SEEDS))
    pairs = [(g, s) for i, (g, _) in enumerate(steps) for j, (_, s) in enumerate(steps) if i != j]
    expected = np.mean([g is not None and s is not None and s < g for g, s in pairs])
    assert found.cell("add_mod97", "Positive if paired at random").ours == pytest.approx(expected)
    assert found.cell("add_mod97", "Positive lead").ours == 0.75
    never = found.cell("add_mod97", "Never crossed")
    assert (never.ours, never.n) == (1, 4)
    assert str(found.cell("add_mod97", "Mean lead (steps)").ours).startswith("below")


def test_crossings_at_the_first_evaluation_are_counted_as_doubtful_also_on_groups() -> None:
    runs = {f"S5_f0.5_s{seed}": {"grok": 3000, "sync": sync} for seed, sync in ((0, 0), (1, 0), (42, 1000))}
    found = table(evidence("symmetric", runs))
    doubtful = found.cell("S5_f0.5", "Doubtful crossings")
    assert (doubtful.ours, doubtful.n) == (2, 3)
    assert found.cell("S5_f0.7", "Seeds").ours == "no runs"


def test_runs_that_never_grok_have_a_share_of_grokked_and_no_lead() -> None:
    found = table(evidence("base", leads("add_mod97", [(None, 1000)] * 3), SEEDS))
    same_share(found.cell("add_mod97", "Grokked"), 0, 3)
    row = next(row for row in found.rows if row[0].ours == "add_mod97")
    assert all(cell == Cell() for cell in row[3:])


def test_without_runs_every_row_and_the_sentence_say_so() -> None:
    assert all(row[1].ours == "no runs" and all(cell == Cell() for cell in row[2:]) for row in table(EMPTY).rows)
    assert "not known" in sentence(table(EMPTY))
