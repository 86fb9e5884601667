"""The signals: each column is one that its measure promises, and what needs the final model is taken afterwards."""

import re
from fnmatch import fnmatchcase

import pytest

from grokscope.measures.catalogue import MEASURES as ENTRIES
from grokscope.studies.signals.catalogue import AFTERWARDS, MEASURES, SIGNALS, Signal, signal_named


@pytest.mark.parametrize("signal", SIGNALS, ids=lambda one: one.name)
def test_a_signal_reads_a_column_that_its_measure_promises(signal: Signal) -> None:
    measure, _, where = signal.measure.partition("@")
    column, _, place = signal.column.partition("@")
    assert where == place
    assert signal_named(signal.name) is signal
    assert 1 <= signal.tier <= 5
    assert bool(signal.source) or not signal.published
    if measure:
        patterns = [re.sub(r"\{[^}]*\}|…", "*", one) for one in ENTRIES[measure].columns]
        assert any(fnmatchcase(column, pattern) for pattern in patterns)
        assert signal.measure in (AFTERWARDS if where else (*MEASURES, *AFTERWARDS))


def test_names_and_titles_are_unique_and_nothing_is_measured_twice() -> None:
    for names in ([one.name for one in SIGNALS], [one.title for one in SIGNALS], [*MEASURES, *AFTERWARDS]):
        assert len(set(names)) == len(names)
    assert set(MEASURES) | set(AFTERWARDS) == {one.measure for one in SIGNALS if one.measure}


def test_a_decline_warns_by_rising() -> None:
    assert all(one.rises for one in SIGNALS if one.how != "value")
