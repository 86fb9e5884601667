"""Signals of the state: by definition, the same alone and stacked, resumed, and told apart by a single bit."""

from dataclasses import replace
from pathlib import Path

import pytest
import torch
from plain_runs import TWO_LAYERS, mixed_runs, small_run

from grokscope.activations import subject_of
from grokscope.jobs import Stopped, run_all
from grokscope.measures import weight_signals as signals_module
from grokscope.measures.norms import norms
from grokscope.measures.weight_signals import adam_step, fingerprints, weight_signals
from grokscope.runs import Store, run_name
from grokscope.runs.measuring import Measuring
from grokscope.specs import Cadence
from grokscope.training import Cohort, advance, initial_state
from grokscope.training.cohort import OLDEST_TRITON

RUN = small_run("add_mod7", 0, TWO_LAYERS, steps=12, learning_rate=0.01)
SIGNALS = Measuring(signals=True)


def test_norms_of_blocks_are_those_of_the_measure() -> None:
    state = initial_state(Cohort([RUN]))
    [row] = weight_signals(state, Cohort([RUN]))
    expected = norms(subject_of([RUN], state.weights)).by_block
    assert {f"norm_{name}": pytest.approx(float(value), rel=1e-12) for name, value in expected.items()} == {
        name: value for name, value in row.items() if name.startswith("norm_")
    }


def test_the_step_is_what_the_weights_lose_beyond_decay() -> None:
    specs = [replace(run, precision="float64") for run in mixed_runs()]
    cohort = Cohort(specs)
    state = initial_state(cohort)
    advance(state, cohort, 4, False)
    before = state.weights.clone()
    advance(state, cohort, 1, False)
    shrunk = before * (1 - cohort.column("learning_rate") * cohort.column("weight_decay"))[:, None]
    step = adam_step(state.first, state.second, state.age, cohort)
    torch.testing.assert_close(step, shrunk - state.weights, rtol=1e-8, atol=1e-12)
    for row, own, weights in zip(weight_signals(state, cohort), step, state.weights, strict=True):
        assert row["update_norm"] == pytest.approx(float(own.norm()), rel=1e-12)
        cosine = torch.nn.functional.cosine_similarity(own, weights, dim=0)
        assert row["update_cosine"] == pytest.approx(float(cosine), rel=1e-10)


def test_before_the_first_step_there_is_no_step() -> None:
    [row] = weight_signals(initial_state(Cohort([RUN])), Cohort([RUN]))
    assert row["update_norm"] != row["update_norm"]
    assert row["update_cosine"] != row["update_cosine"]


def test_of_a_run_that_muon_moves_nothing_is_said_of_the_step() -> None:
    spec = replace(RUN, training=replace(RUN.training, optimizer="muon"))
    cohort = Cohort([spec])
    state = initial_state(cohort)
    advance(state, cohort, 2, False)
    [row] = weight_signals(state, cohort)
    assert row["update_norm"] != row["update_norm"]
    assert row["norm_embed"] > 0


def test_a_row_does_not_depend_on_the_other_runs() -> None:
    specs = [RUN.with_seed(seed) for seed in range(5)]
    cohort = Cohort(specs)
    state = initial_state(cohort)
    advance(state, cohort, 3, False)
    for slot in range(5):
        alone = Cohort([specs[slot]])
        own = initial_state(alone)
        own.put(0, state.row(slot))
        assert weight_signals(own, alone) == [weight_signals(state, cohort)[slot]]


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
def test_a_fingerprint_sees_every_bit_and_every_place(dtype: torch.dtype) -> None:
    generator = torch.Generator().manual_seed(0)
    buffer = torch.randn(1, 4000, generator=generator, dtype=dtype)
    [own] = fingerprints(buffer, buffer).tolist()
    assert 0 <= own < 2**53
    kind, width = (torch.int32, 32) if dtype == torch.float32 else (torch.int64, 64)
    for place in range(0, 4000, 397):
        for bit in range(0, width - 1, 7):
            other = buffer.clone()
            other.view(kind)[0, place] ^= 1 << bit
            assert fingerprints(other, buffer).tolist() != [own]
            assert fingerprints(buffer, other).tolist() != [own]
    assert fingerprints(buffer.flip(1), buffer).tolist() != [own]
    assert fingerprints(buffer.clone(), buffer.clone()).tolist() == [own]


@pytest.mark.usefixtures("quick_disk")
def test_signals_are_logged_at_every_evaluation_and_change_no_weight(tmp_path: Path) -> None:
    spec = replace(RUN, checkpoints=Cadence(4), measurements=Cadence(2))
    run_all([spec], Store(tmp_path / "with"), compiled=False, measuring=SIGNALS)
    run_all([spec], Store(tmp_path / "without"), compiled=False)
    rows, plain = (Store(tmp_path / name).find(run_name(spec)).log() for name in ("with", "without"))
    assert [{name: row[name] for name in plain[0]} for row in rows] == plain
    assert len({row["fingerprint"] for row in rows}) == len(rows) == 7
    assert rows[0]["update_norm"] is None
    assert all(row["update_norm"] > 0 for row in rows[1:])


@pytest.mark.usefixtures("quick_disk")
def test_an_interrupted_run_logs_the_same_signals(tmp_path: Path) -> None:
    spec = replace(RUN, checkpoints=Cadence(4), measurements=Cadence(2), precision="float32")
    whole, other, calls = Store(tmp_path / "whole"), Store(tmp_path / "other"), iter(range(100))
    run_all([spec], whole, compiled=False, measuring=SIGNALS)
    with pytest.raises(Stopped):
        run_all([spec], other, compiled=False, measuring=SIGNALS, should_stop=lambda: next(calls) == 3)
    run_all([spec], other, compiled=False, measuring=SIGNALS)
    logs = [(store.find(run_name(spec)).path / "log.jsonl").read_bytes() for store in (whole, other)]
    assert logs[0] == logs[1]


def test_kernels_add_up_to_the_same(monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip("triton", OLDEST_TRITON, "Triton comes with torch's CUDA builds")
    from grokscope.kernels.sums import dots

    cohort = Cohort([RUN, RUN.with_seed(1)])
    state = initial_state(cohort)
    advance(state, cohort, 2, False)
    expected = weight_signals(state, cohort)
    monkeypatch.setattr(signals_module, "_dots", lambda cohort: dots)
    for row, other in zip(weight_signals(state, cohort), expected, strict=True):
        assert row == pytest.approx(other, rel=1e-12)
        assert row["fingerprint"] == other["fingerprint"]
