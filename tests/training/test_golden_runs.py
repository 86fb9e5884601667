"""Pair tables have the bits that they had before tasks were rows: recorded at the last commit with pairs alone."""

import json
from dataclasses import replace

import numpy as np
import pytest
from golden_runs import RECORD, RUNS, digests, library, machine, portable_digests, trained_digests

GOLDEN = json.loads(RECORD.read_text())


@pytest.mark.parametrize("name", RUNS)
def test_specs_tables_and_batches_are_as_before(name: str) -> None:
    assert digests(RUNS[name]) == GOLDEN["data"][name]


@pytest.mark.parametrize("name", RUNS)
def test_weights_and_logs_have_the_bits_of_before(name: str) -> None:
    if machine() not in GOLDEN["native"]:
        pytest.skip("products round by the processor's instructions and the library: compared where they were recorded")
    assert trained_digests(RUNS[name]) == GOLDEN["native"][machine()][name]


def test_on_any_processor_of_one_kind_weights_and_logs_have_the_bits_of_before() -> None:
    if library() not in GOLDEN["portable"]:
        pytest.skip("products round by the library: compared with the version with which they were recorded")
    assert portable_digests() == GOLDEN["portable"][library()]


def test_one_bit_of_a_setting_changes_the_digests() -> None:
    run = RUNS["S3"]
    nearest = float(np.nextafter(np.float32(run.training.learning_rate), np.float32(1)))
    other = replace(run, training=replace(run.training, learning_rate=nearest))
    before, after = trained_digests(run), trained_digests(other)
    assert before["begin"] == after["begin"]
    assert before["weights"] != after["weights"]
