import math

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from plain_runs import ARCHITECTURES, PlainRun, fresh, reference_in, small_run
from torch import Tensor

from grokscope.activations import InputEdit, RunStack, subject_of
from grokscope.errors import InputError
from grokscope.measures.logit_structure import LogitStructure, logit_structure
from grokscope.specs import RunSpec
from grokscope.tasks import character_table, named_task
from grokscope.training import advance

CYCLIC = ["add_mod7", "add_mod6", "sub_mod7", "poly_a2+b2_mod7"]
GROUPS = ["S3", "Q8", "A4", "D5", "Z6"]  # A4 has a pair of conjugate irreps, Q8 a quaternionic one


def discrete_logarithms(p: int) -> dict[int, int]:
    for g in range(2, p):
        powers = {pow(g, k, p): k for k in range(p - 1)}
        if len(powers) == p - 1:
            return powers
    raise AssertionError


def wave_cubes(s: list[int], n: int) -> list[np.ndarray]:
    """cos(2πk(s − c)/n) for every pair and class, k = 1 … ⌊n/2⌋."""
    return [
        np.array([[math.cos(2 * math.pi * k * (own - c) / n) for c in range(n)] for own in s])
        for k in range(1, n // 2 + 1)
    ]


def character_cubes(name: str) -> list[np.ndarray]:
    """Re χ_ρ(x y z⁻¹) for every pair (x, y) and class z, one irrep of each conjugate pair, the trivial one left out."""
    group = named_task(name).group
    assert group is not None
    table = character_table(group)
    found = []
    for irrep, conjugate in enumerate(table.conjugates):
        if irrep == 0 or conjugate < irrep:
            continue
        cube = np.empty((group.order, group.order, group.order))
        for x in range(group.order):
            for y in range(group.order):
                for z in range(group.order):
                    g = group.table[group.table[x, y], group.inverse[z]]
                    cube[x, y, z] = table.values[irrep][group.class_of[g]].real
        found.append(cube.reshape(-1, group.order))
    return found


def shares_by_cubes(logits: np.ndarray, cubes: list[np.ndarray]) -> tuple[list[float], list[float]]:
    """⟨L, C⟩²/(‖C‖²‖L‖²) of centred logits, and the coefficient of C scaled to 1 at its largest."""
    centred = logits - logits.mean(axis=1, keepdims=True)
    shares = [(centred * cube).sum() ** 2 / ((cube**2).sum() * (centred**2).sum()) for cube in cubes]
    heights = [(centred * cube).sum() / (cube**2).sum() * cube.max() for cube in cubes]
    return shares, heights


def expected_of(task: str, logits: np.ndarray) -> tuple[list[float], list[float]]:
    data = named_task(task)
    if task in GROUPS:
        return shares_by_cubes(logits, character_cubes(task))
    if task.startswith(("mult", "div")):
        log = discrete_logarithms(data.symbols)
        rows = [i for i, answer in enumerate(data.answers) if answer]
        columns = sorted(log, key=log.__getitem__)
        cubes = wave_cubes([log[int(data.answers[i])] for i in rows], data.symbols - 1)
        return shares_by_cubes(logits[np.ix_(rows, columns)], cubes)
    return shares_by_cubes(logits, wave_cubes(data.answers.tolist(), data.symbols))


def reference_logits(run: RunSpec, weights: Tensor, cohort, slot: int) -> np.ndarray:
    with torch.no_grad():
        return reference_in(cohort, weights, slot)(PlainRun(run).given).numpy()


@pytest.mark.parametrize("task", [*CYCLIC, "mult_mod7", "div_mod7", *GROUPS])
def test_shares_and_heights_are_those_of_explicit_cubes(task: str) -> None:
    fast = {"learning_rate": 0.01, "weight_decay": 0.0}  # soon something is known
    runs = [small_run(task, seed, ARCHITECTURES["one_layer"], **fast) for seed in range(2)]
    state, cohort = fresh(list(runs))
    advance(state, cohort, 60)
    found = logit_structure(subject_of(runs, state.weights))
    for slot, run in enumerate(runs):
        shares, heights = expected_of(task, reference_logits(run, state.weights, cohort, slot))
        assert found.explained[slot].numpy() == pytest.approx(shares, abs=1e-12)
        assert found.height[slot].numpy() == pytest.approx(heights, abs=1e-11)
        assert float(found.total[slot]) == pytest.approx(sum(shares))
    assert found.total.max() > 1e-3


def test_sums_are_read_whatever_the_operation() -> None:
    run = small_run("mult_mod7", 1)
    state, cohort = fresh([run])
    advance(state, cohort, 30)
    found = logit_structure(subject_of([run], state.weights), by="sum")
    task = named_task("mult_mod7")
    sums = [int(a + b) % 7 for a, b in task.inputs]
    shares, _ = shares_by_cubes(reference_logits(run, state.weights, cohort, 0), wave_cubes(sums, 7))
    assert found.explained[0].numpy() == pytest.approx(shares, abs=1e-12)


def test_another_basis_can_be_asked_for() -> None:
    run = small_run("mult_mod7", 1)
    state, cohort = fresh([run])
    advance(state, cohort, 30)
    subject = subject_of([run], state.weights)
    found = logit_structure(subject, basis=subject.task.basis("additive"))
    cubes = wave_cubes(subject.task.answers.tolist(), 7)
    shares, _ = shares_by_cubes(reference_logits(run, state.weights, cohort, 0), cubes)
    assert found.explained[0].numpy() == pytest.approx(shares, abs=1e-12)


# Planted logits.


def planted(task: str, logits: np.ndarray) -> tuple[RunStack, dict[str, InputEdit]]:
    """A subject whose logits are these."""
    run = small_run(task, 0)
    state, _ = fresh([run])

    def edit(value: Tensor, rows: slice) -> Tensor:
        value = value.clone()
        value[..., : logits.shape[1]] = torch.from_numpy(logits)[rows]
        return value

    return subject_of([run], state.weights), {"logits": edit}


def structure_of(task: str, logits: np.ndarray) -> LogitStructure:
    subject, edits = planted(task, logits)
    return logit_structure(subject, edits=edits)


@given(st.integers(1, 5), st.floats(0.1, 50), st.integers(0, 2**32 - 1))
@settings(max_examples=15, deadline=None)
def test_a_planted_wave_explains_all_and_its_height_is_its_amplitude(k: int, amplitude: float, seed: int) -> None:
    generator = np.random.default_rng(seed)
    wave = wave_cubes(named_task("add_mod11").answers.tolist(), 11)[k - 1]
    of_each_pair = generator.normal(size=(121, 1)) * 5  # softmax does not see it
    found = structure_of("add_mod11", amplitude * wave + of_each_pair)
    expected = np.zeros(5)
    expected[k - 1] = 1
    assert found.explained[0].numpy() == pytest.approx(expected, abs=1e-10)
    assert found.height[0].numpy() == pytest.approx(amplitude * expected, abs=1e-9)
    assert float(found.total) == pytest.approx(1)
    assert float(found.variance) == pytest.approx(amplitude**2 / 2)


def test_two_key_frequencies_share_by_their_squares() -> None:
    cubes = wave_cubes(named_task("sub_mod11").answers.tolist(), 11)
    found = structure_of("sub_mod11", 3 * cubes[1] + 4 * cubes[4])
    assert found.explained[0].tolist() == pytest.approx([0, 0.36, 0, 0, 0.64], abs=1e-12)


def test_a_planted_character_explains_all() -> None:
    for mode, cube in enumerate(character_cubes("A4")):
        found = structure_of("A4", cube)
        assert int(found.explained.argmax()) == mode
        assert float(found.explained.max()) == pytest.approx(1)
        assert float(found.height[0, mode]) == pytest.approx(cube.max())


def test_what_depends_on_the_class_alone_is_no_algorithm() -> None:
    found = structure_of("add_mod11", np.tile(np.random.default_rng(0).normal(size=11), (121, 1)))
    assert found.total.item() < 1e-20
    assert found.variance.item() > 0.1


@given(st.sampled_from(["add_mod6", "mult_mod7", "S3", "Q8"]), st.integers(0, 2**32 - 1))
@settings(max_examples=15, deadline=None)
def test_any_logits_are_split_in_orthogonal_parts(task: str, seed: int) -> None:
    data = named_task(task)
    logits = np.random.default_rng(seed).normal(size=(len(data.inputs), data.classes))
    found = structure_of(task, logits)
    shares, heights = expected_of(task, logits)
    assert found.explained[0].numpy() == pytest.approx(shares, abs=1e-12)
    assert found.height[0].numpy() == pytest.approx(heights, abs=1e-12)
    assert 0 <= float(found.total) <= 1


# Where there is nothing to read.


def test_logits_that_are_all_alike_have_no_structure() -> None:
    level = np.random.default_rng(0).normal(size=(49, 1)) * 3
    for logits in (np.zeros((49, 7)), np.tile(level, 7), np.tile(level, 7) * (1 + 1e-9 * np.arange(7))):
        found = structure_of("add_mod7", logits)
        assert found.explained.isnan().all()
        assert found.total.isnan().all()
        assert found.variance.isnan().all()


def test_a_run_of_nan_is_nan_alone_and_rejected_when_single() -> None:
    runs = [small_run("add_mod7", seed) for seed in range(3)]
    state, _ = fresh(list(runs))
    subject = subject_of(runs, state.weights)
    healthy = logit_structure(subject)
    subject.weights["unembed.W_U"][1] = torch.nan
    sick = logit_structure(subject)
    for name in ("explained", "height", "variance"):
        one, other = getattr(healthy, name), getattr(sick, name)
        assert other[1].isnan().all()
        assert torch.equal(one[[0, 2]], other[[0, 2]])
    with pytest.raises(InputError, match="run 1 has logits that are not numbers"):
        logit_structure(subject.select([1]))


def test_stacked_equals_solo_and_chunks_do_not_matter(monkeypatch: pytest.MonkeyPatch) -> None:
    runs = [small_run("add_mod31", seed) for seed in range(3)]
    state, _ = fresh(list(runs))
    subject = subject_of(runs, state.weights)
    together = logit_structure(subject)
    for i in range(3):
        alone = logit_structure(subject.select([i]))
        assert torch.allclose(together.explained[i], alone.explained[0], rtol=1e-9, atol=1e-15)
    monkeypatch.setattr(RunStack, "chunks", lambda self: iter([slice(0, 961)]))
    whole = logit_structure(subject)
    assert torch.allclose(together.explained, whole.explained, rtol=1e-9, atol=1e-15)


@pytest.mark.gpu
def test_a_gpu_reads_alike() -> None:
    for task in ("mult_mod7", "S3"):
        run = small_run(task, 0)
        state, _ = fresh([run])
        here, there = (logit_structure(subject_of([run], w)) for w in (state.weights, state.weights.cuda()))
        assert torch.allclose(here.explained, there.explained.cpu())
