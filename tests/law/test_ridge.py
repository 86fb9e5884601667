"""Ridge regression in closed form, against gradient descent step by step and against whole runs of the engine."""

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import lru_cache
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from grokscope.errors import InputError
from grokscope.jobs import run_all
from grokscope.law import expected_error, first_step_within, ridge_descent, ridge_timing, squared_errors
from grokscope.law.ridge import _largest_gradient
from grokscope.measures import snapshot
from grokscope.runs import Store, run_name
from grokscope.specs import Architecture, Cadence, Initialization, RunSpec, Training
from grokscope.tasks import named_task, split
from grokscope.tasks.teacher import teacher_weights
from grokscope.timeline import Outcome, timeline_of
from grokscope.training import Cohort, advance, initial_state

LINEAR = Architecture(kind="mlp", layers=0, biases=False)
EPSILON = 1e6
SEEDS = (1, 2, 3)


def descent(rate: float, penalty: float = 0.0, steps: int = 2600, epsilon: float = EPSILON) -> Training:
    """AdamW that is gradient descent with γ and ζ: η = γε/2 and λ = 2ζ/ε."""
    return Training(
        steps=steps,
        learning_rate=rate * epsilon / 2,
        epsilon=epsilon,
        beta1=0.0,
        weight_decay=2 * penalty / epsilon,
        batch_size=None,
        loss="mse",
    )


@dataclass(frozen=True)
class Setting:
    """A task without its seed, and how it is learnt."""

    task: str
    training: Training
    initialization: Initialization
    precision: Any = "float64"

    def run(self, seed: int) -> RunSpec:
        run = RunSpec(
            f"{self.task}_seed{seed}",
            architecture=LINEAR,
            initialization=self.initialization,
            training=self.training,
            precision=self.precision,
            measurements=Cadence(every=None, per_decade=200),  # little more than a per cent apart
        )
        return run.with_seed(seed)


LARGE, LARGER = (Initialization(scheme="normal", scale=scale) for scale in (5.0, 10.0))
SETTINGS = {
    "fewer rows than features, decay": Setting("ridge_d60_n40_success0.6", descent(0.05, 0.02, steps=2900), LARGER),
    "fewer rows than features, decay and noise": Setting(
        "ridge_d60_n40_noise0.1_success0.6", descent(0.05, 0.02, steps=2900), Initialization(scale=10.0)
    ),
    "no decay": Setting("ridge_d60_n72", descent(0.05), LARGE),
    "no decay, noise": Setting("ridge_d60_n80_noise0.1", descent(0.05, steps=1800), LARGE),
    "decay and noise": Setting("ridge_d60_n80_noise0.2_success0.2", descent(0.05, 0.01, steps=1200), LARGE),
    "no decay, float32": Setting("ridge_d60_n80", descent(0.05, steps=1800), LARGE, precision="float32"),
}
settings = pytest.mark.parametrize("setting", SETTINGS)


@lru_cache
def trained(setting: str) -> tuple[list[dict[str, list[float]]], np.ndarray]:
    """What each run's evaluations read, and the last weights."""
    specs = [SETTINGS[setting].run(seed) for seed in SEEDS]
    cohort = Cohort(specs)
    state, logs = initial_state(cohort), [dict[str, list[float]]() for _ in specs]
    for step in specs[0].measurements.steps(specs[0].training.steps):
        state, _ = advance(state, cohort, step - int(state.step[0]))
        found = snapshot(state.weights, cohort, compiled=False)
        for slot, log in enumerate(logs):
            for name, value in {"step": step, **found.row(slot)}.items():
                log.setdefault(name, []).append(value)
    return logs, state.weights.double().numpy()


def events(setting: str, slot: int) -> tuple[int, int]:
    timeline = timeline_of(trained(setting)[0][slot])
    assert timeline.outcome == Outcome.GROKKED
    assert timeline.memorized is not None
    assert timeline.grokked is not None
    return timeline.memorized, timeline.grokked


def predicted(run: RunSpec) -> tuple[float, float]:
    found = ridge_timing(run)
    assert found.memorized is not None
    assert found.grokked is not None
    return found.memorized, found.grokked


@settings
def test_runs_memorise_and_grok_when_the_closed_form_says(setting: str) -> None:
    delays = []
    for slot, seed in enumerate(SEEDS):
        run = SETTINGS[setting].run(seed)
        steps = np.array(run.measurements.steps(run.training.steps))
        for seen, said in zip(events(setting, slot), predicted(run), strict=True):
            assert seen == pytest.approx(said, rel=0.02)
            # More than that: it is the first evaluation at or after the closed form's step, up to 0.1 %.
            assert steps[steps >= 0.999 * said][0] <= seen <= steps[steps >= 1.001 * said][0]
        delays.append(events(setting, slot)[1] / events(setting, slot)[0])
    assert min(delays) > (20 if "fewer" in setting else 5)


@settings
def test_losses_follow_the_closed_form_at_every_evaluation(setting: str) -> None:
    tolerance = 1e-3 if SETTINGS[setting].precision == "float32" else 1e-4
    logs, weights = trained(setting)
    for slot, seed in enumerate(SEEDS):
        run, log = SETTINGS[setting].run(seed), logs[slot]
        task, parts, found = named_task(run.task), split(named_task(run.task), 0.3, seed), ridge_timing(run)
        assert found.deviation < 1e-4
        assert task.vectors is not None
        steps = np.array(log["step"])
        for rows, name in ((parts.train, "train_loss"), (parts.validation, "validation_loss")):
            error = squared_errors(found.descent, task.vectors[rows], task.answers[rows])(steps)
            near = error > 1e-6  # below that a long run's rounding may be as large
            assert np.abs(np.array(log[name]) / error - 1)[near].max() < tolerance
        last = found.descent.weights(steps[-1:])[0, :, 0]
        assert np.abs(weights[slot] - last).max() < tolerance


@pytest.mark.parametrize(
    ("change", "of"),
    [
        (lambda run: replace(run, training=replace(run.training, weight_decay=1.1 * run.training.weight_decay)), 1),
        (lambda run: replace(run, training=replace(run.training, learning_rate=1.05 * run.training.learning_rate)), 0),
        (lambda run: replace(run, training=replace(run.training, epsilon=1.05 * run.training.epsilon)), 0),
        (lambda run: replace(run, seeds=replace(run.seeds, initialization=9)), 1),
        (lambda run: replace(run, initialization=replace(run.initialization, scale=11.0)), 1),
        (lambda run: replace(run, task=run.task.replace("0.6", "0.65")), 1),
    ],
    ids=["weight decay", "learning rate", "epsilon", "initial weights", "scale", "success"],
)
def test_anything_else_is_noticed(change: Callable[[RunSpec], RunSpec], of: int) -> None:
    setting = "fewer rows than features, decay"
    for slot, seed in enumerate(SEEDS):
        assert predicted(change(SETTINGS[setting].run(seed)))[of] != pytest.approx(events(setting, slot)[of], rel=0.02)


def test_a_stored_run_has_the_events_that_are_predicted(tmp_path: Path, quick_disk: None) -> None:
    run = replace(SETTINGS["decay and noise"].run(2), precision="float32", checkpoints=Cadence(every=None))
    run_all([run], Store(tmp_path), compiled=False)
    timeline = Store(tmp_path).find(run_name(run)).record().timeline
    assert (timeline.memorized, timeline.grokked) == pytest.approx(predicted(run), rel=0.02)


def test_with_a_smaller_epsilon_events_are_late_by_less_than_the_deviation() -> None:
    run = replace(SETTINGS["no decay"].run(2), training=descent(0.05, epsilon=60.0))
    found, cohort = ridge_timing(run), Cohort([run])
    assert 0.1 < found.deviation < 0.3
    assert found.memorized is not None
    state, late = initial_state(cohort), found.memorized * (1 + found.deviation)
    errors = {}
    for step in (int(found.memorized), int(np.ceil(late))):
        state, _ = advance(state, cohort, step - int(state.step[0]))
        errors[step] = snapshot(state.weights, cohort, compiled=False).row(0)["train_relative_error"]
    before, after = errors.values()
    assert before > 1.01
    assert after < 1


@given(st.integers(0, 10**6), st.integers(1, 4), st.sampled_from([0.0, 0.3]))
def test_the_closed_form_is_gradient_descent_step_by_step(seed: int, outputs: int, penalty: float) -> None:
    rng = np.random.default_rng(seed)
    rows, features = rng.integers(2, 12, size=2)
    inputs, answers = rng.normal(size=(rows, features)), rng.normal(size=(rows, outputs))
    weights = start = rng.normal(size=(features, outputs))
    rate = 0.9 / (np.linalg.eigvalsh(inputs.T @ inputs / rows).max() + penalty)
    found = ridge_descent(inputs, answers, start, rate, penalty)
    fresh = rng.normal(size=(7, features)), rng.normal(size=(7, outputs))
    errors = [squared_errors(found, *group)(np.arange(30.0)) for group in ((inputs, answers), fresh)]
    for step in range(30):
        assert np.allclose(found.weights(np.array([float(step)]))[0], weights, atol=1e-10)
        for error, (given_rows, wanted) in zip(errors, ((inputs, answers), fresh), strict=True):
            assert error[step] == pytest.approx(np.square(given_rows @ weights - wanted).mean(), abs=1e-10)
        gradient = 2 * inputs.T @ (inputs @ weights - answers) / (rows * outputs)
        assert np.abs(gradient).max() <= _largest_gradient(found) * (1 + 1e-12)
        weights = (1 - rate * penalty) * weights - rate * outputs / 2 * gradient


def test_the_limit_is_the_ridge_solution() -> None:
    rng = np.random.default_rng(0)
    inputs, answers, penalty = rng.normal(size=(20, 8)), rng.normal(size=(20, 1)), 0.2
    found = ridge_descent(inputs, answers, np.zeros((8, 1)), rate=0.05, penalty=penalty)
    solution = np.linalg.solve(inputs.T @ inputs + 20 * penalty * np.eye(8), inputs.T @ answers)
    assert np.allclose(found.weights(np.array([1e5]))[0], solution)


def test_what_no_row_has_a_part_in_stays_without_decay() -> None:
    rng = np.random.default_rng(1)
    inputs, answers, start = rng.normal(size=(3, 8)), rng.normal(size=(3, 1)), rng.normal(size=(8, 1))
    found = ridge_descent(inputs, answers, start, rate=0.05)
    assert (found.eigenvalues == 0).sum() == 5
    end = found.weights(np.array([1e6]))[0]
    assert np.allclose(end, start + np.linalg.pinv(inputs) @ (answers - inputs @ start))


def test_gradient_flow_is_behind_by_the_factor_that_is_stated() -> None:
    rng = np.random.default_rng(2)
    inputs, start = rng.normal(size=(80, 60)), 5 * rng.normal(size=(60, 1)) / 60**0.5
    answers = inputs @ rng.normal(size=(60, 1)) / 60**0.5
    for rate in (0.01, 0.05, 0.2):
        steps, fastest = [], 0.0
        for finer in (1, 10_000):  # as good as flow
            found = ridge_descent(inputs, answers, start, rate / finer)
            error = squared_errors(found, inputs, answers)
            crossed = first_step_within(error, 0.05, 10**6 * finer)
            assert crossed is not None
            steps.append(crossed / finer)
            fastest = max(fastest, 1 - found.factors.min())
        assert 1 < steps[1] / steps[0] < 1 / (1 - fastest)


def test_the_expected_error_is_the_mean_over_teachers_noise_and_weights() -> None:
    rng = np.random.default_rng(3)
    rows, features, rate, penalty, noise, start_std, draws = 15, 20, 0.1, 0.05, 0.4, 0.7, 3000
    inputs = rng.normal(size=(rows, features))
    times = np.array([0.0, 3, 30, 300, 3000])
    teachers = rng.normal(size=(features, draws)) / features**0.5
    answers = inputs @ teachers + noise * rng.normal(size=(rows, draws))
    found = ridge_descent(inputs, answers, start_std * rng.normal(size=(features, draws)), rate, penalty)
    each = np.square(found.weights(times) - teachers).sum(axis=1) + noise**2
    expected = expected_error(
        found.eigenvalues, rate, penalty, rows=rows, start_std=start_std, teacher_norm=1.0, noise=noise
    )(times)
    assert np.abs((each.mean(axis=1) - expected) / (each.std(axis=1) / draws**0.5)).max() < 4
    assert np.abs(each.mean(axis=1) / expected - 1).max() < 0.02


def test_eigenvalues_alone_give_the_mean_step_of_many_runs() -> None:
    setting = Setting("ridge_d200_n120_noise0.1_success0.8", descent(0.05, 0.01, steps=20_000), LARGER)
    ratios = []
    for seed in range(1, 17):
        run = setting.run(seed)
        found, task = ridge_timing(run), named_task(run.task)
        assert found.grokked is not None
        error = expected_error(
            found.descent.eigenvalues,
            found.descent.rate,
            found.descent.penalty,
            rows=120,
            start_std=10 / 200**0.5,
            teacher_norm=float(np.linalg.norm(teacher_weights(200, seed))),
            noise=0.1,
        )
        crossed = first_step_within(error, task.success_error, 20_000)
        assert crossed is not None
        ratios.append(found.grokked / crossed)
    assert np.mean(ratios) == pytest.approx(1, abs=0.02)
    assert 0.02 < np.std(ratios) < 0.12  # one run differs by more, about 1/√d


def test_the_first_step_within_a_limit() -> None:
    def falling(steps: np.ndarray) -> np.ndarray:
        return 100 / (1 + steps)

    assert first_step_within(falling, 1.0, 10**6) == pytest.approx(99)
    assert first_step_within(falling, 1.0, 99) == pytest.approx(99)
    assert first_step_within(falling, 1.0, 98) is None
    assert first_step_within(falling, 1e-3, 10**4) is None
    assert first_step_within(falling, 100.0, 10) == 0
    assert first_step_within(falling, 60.0, 10) == pytest.approx(2 / 3)
    assert first_step_within(lambda steps: np.where((steps > 50) & (steps < 52), 0, 1), 0.5, 1000) == pytest.approx(50)


@pytest.mark.parametrize(
    ("change", "problem"),
    [
        ({"task": "add_mod7"}, "the closed form is of real answers to vectors, as ridge_d100_n200, got 'add_mod7'"),
        ({"architecture": replace(LINEAR, biases=True)}, "needs biases = False, got True"),
        ({"architecture": replace(LINEAR, layers=1)}, "needs layers = 0, got 1"),
        ({"training": replace(descent(0.05), beta1=0.9)}, r"needs beta1 = 0\.0, got 0\.9"),
        ({"training": replace(descent(0.05), batch_size=5)}, "needs batch_size = None, got 5"),
        ({"training": replace(descent(0.05), clip_norm=1.0)}, "needs clip_norm = None, got 1"),
        ({"training": replace(descent(0.05), warmup_steps=5)}, "needs warmup_steps = 0, got 5"),
        ({"training": descent(1.0)}, r"rate × \(largest eigenvalue \+ penalty\) must stay below 1, got"),
    ],
)
def test_what_has_no_closed_form_is_rejected(change: dict[str, Any], problem: str) -> None:
    with pytest.raises(InputError, match=problem):
        ridge_timing(replace(SETTINGS["no decay"].run(1), **change))
