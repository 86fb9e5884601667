"""Which came first."""

import math

import pytest

from grokscope.timeline import Lead, LeadStatus, lead
from paper_tables import ADDITION, ARCH_ABLATION, CROSS, EXLOSS


@pytest.mark.parametrize("name", CROSS)
def test_the_printed_leads_and_precursors(name: str) -> None:
    row = CROSS[name]
    found = lead(row.grok, row.sync, last=15_000)
    assert found.steps == row.lead
    assert found.is_precursor == (name != "mult_mod97_s42")
    assert found.sign == (-1 if name == "mult_mod97_s42" else 1)


def test_the_printed_ties_and_architectures() -> None:
    ties = [lead(grok, sync, 15_000).status for grok, _, _, sync, _ in EXLOSS.values()]
    assert ties.count(LeadStatus.TIES) == 8
    assert ties.count(LeadStatus.LAGS) == 1
    found = {name: lead(grok, sync, 15_000) for name, (grok, sync, _) in ARCH_ABLATION.items()}
    assert [found[name].steps for name in ARCH_ABLATION] == [printed for *_, printed in ARCH_ABLATION.values()]
    assert found["2-layer MLP-only"] == Lead(LeadStatus.NO_GROKKING)
    # One run, two sync steps: Table 2 and Table 8 differ about it.
    assert ADDITION["add_mod97_s42"].lead != found["2-layer standard"].steps


def test_grokking_without_the_crossing_is_a_negative_of_unknown_size() -> None:
    found = lead(3000, None, last=15_000)
    assert (found.status, found.steps, found.less_than) == (LeadStatus.NEVER, None, -12_000)
    assert (found.is_precursor, found.sign, found.lag) == (False, -1, (12_000, False))
    assert lead(3000, 2000, 15_000).lag == (-1000, True)
    assert (found.bound, lead(3000, 2000, 15_000).bound) == (-12_000, 1000)
    nothing = lead(None, 500, 15_000)
    assert math.isnan(nothing.bound)
    assert (nothing.is_precursor, nothing.sign, nothing.lag, nothing.steps) == (False, None, None, None)
