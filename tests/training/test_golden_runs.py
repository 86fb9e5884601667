"""Pair tables have the bits that they had before tasks were rows: recorded at the last commit with pairs alone."""

import json

import pytest
from golden_runs import RECORD, RUNS, digests, machine, trained_digests

GOLDEN = json.loads(RECORD.read_text())


@pytest.mark.parametrize("name", RUNS)
def test_specs_tables_and_batches_are_as_before(name: str) -> None:
    assert digests(RUNS[name]) == GOLDEN["data"][name]


@pytest.mark.parametrize("name", RUNS)
def test_weights_and_logs_have_the_bits_of_before(name: str) -> None:
    if machine() != GOLDEN["machine"]:
        pytest.skip("products round by the vector units and the library: compared where the bits were recorded")
    assert trained_digests(RUNS[name]) == GOLDEN["trained"][name]
