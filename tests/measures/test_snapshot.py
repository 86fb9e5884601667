from collections import Counter
from dataclasses import replace

import numpy as np
import pytest
import torch
from plain_runs import (
    ARCHITECTURES,
    SMALL,
    TWO_LAYERS,
    PlainRun,
    fresh,
    mixed_runs,
    reference_in,
    small_run,
)
from torch import Tensor
from torch.nn.functional import cross_entropy

from grokscope.activations import subject_of
from grokscope.measures import Question, Snapshot, measure, snapshot
from grokscope.model import ReferenceModule
from grokscope.specs import RunSpec
from grokscope.training import Cohort, State, advance
from measured_stacks import logarithm_order

SITES = {"on": "blocks.0.mlp.hook_post", "dropped": "blocks.0.hook_attn_out", "norm": "blocks.0.hook_attn_out"}


def trained(runs: list[RunSpec | None], steps: int = 25) -> tuple[State, Cohort]:
    state, cohort = fresh(runs)
    advance(state, cohort, steps)
    return state, cohort


# A plain reading of one run, by its reference module.


def plain_reading(run: RunSpec, reference: ReferenceModule) -> dict[str, float]:
    """Accuracies, losses and norm over all pairs."""
    data = PlainRun(run)
    with torch.no_grad():
        logits = reference(data.given)
    found = {}
    for name, rows, labels in (("train", data.train, data.labels), ("validation", data.validation, data.answers)):
        found[f"{name}_accuracy"] = (logits[rows].argmax(dim=1) == labels[rows]).double().mean().item()
        found[f"{name}_loss"] = cross_entropy(logits[rows], labels[rows]).item()
    found["norm"] = sum((parameter.detach().double() ** 2).sum().item() for parameter in reference.parameters()) ** 0.5
    return found


def neurons(run: RunSpec, reference: ReferenceModule) -> np.ndarray:
    """What FSD reads, at the read position, for every pair in the task's order: [inputs, neurons]."""
    seen: list[Tensor] = []
    reference.get_submodule(SITES[reference.architecture.mlp]).register_forward_hook(
        lambda module, arguments, out: seen.append(out[:, -1].double())
    )
    with torch.no_grad():
        reference(PlainRun(run).given)
    return seen[0].numpy()


def answer_means(values: np.ndarray, answers: np.ndarray, classes: int) -> np.ndarray:
    return np.stack([values[answers == answer].mean(axis=0) for answer in range(classes)])


def synchronization(power: np.ndarray) -> float:
    """(max par − 1/modes)/(1 − 1/modes) of powers [modes, neurons], by counting votes; who is silent has none."""
    responding = [column for column in power.T if column.max() > 1e-20]
    assert 2 * len(responding) > power.shape[1]
    votes = Counter(int(np.argmax(column)) for column in responding)
    chance = 1 / len(power)
    return (max(votes.values()) / len(responding) - chance) / (1 - chance)


def fourier_powers(means: np.ndarray) -> np.ndarray:
    return np.abs(np.fft.rfft(means, axis=0)[1:]) ** 2


def symmetric_three_powers(means: np.ndarray, table: np.ndarray) -> np.ndarray:
    """Power per dimension on S3 of the sign and, by Plancherel, of the two-dimensional irrep."""
    identity = next(e for e in range(6) if (table[e] == np.arange(6)).all())
    sign = np.array([-1 if table[g, g] == identity and g != identity else 1 for g in range(6)])
    of_sign = (sign @ means) ** 2 / 6
    rest = (means**2).sum(axis=0) - means.sum(axis=0) ** 2 / 6 - of_sign
    return np.stack([of_sign / 1, rest / 4])


def plain_powers(run: RunSpec, reference: ReferenceModule) -> tuple[np.ndarray, np.ndarray]:
    """Power per dimension of each neuron in the task's own modes, and the modes' dimensions."""
    task = PlainRun(run).task
    means = answer_means(neurons(run, reference), task.answers, task.classes)
    if run.task == "S3":
        return symmetric_three_powers(means, task.answers.reshape(6, 6)), np.array([1, 4])
    if run.task.startswith(("mult", "div")):
        means = means[logarithm_order(task.symbols)]
    powers = fourier_powers(means)
    return powers, np.array([1 if 2 * f == len(means) else 2 for f in range(1, len(powers) + 1)])


def plain_fsd(run: RunSpec, reference: ReferenceModule) -> float:
    return synchronization(plain_powers(run, reference)[0])


def plain_median_rank(run: RunSpec, reference: ReferenceModule) -> float:
    """The median over neurons of how many modes hold 90 % of its power."""
    powers, dimensions = plain_powers(run, reference)
    ranks = []
    for neuron in (powers * dimensions[:, None]).T:
        if neuron.sum() < 1e-20:  # never active: it has no rank
            continue
        held, rank = 0.0, 0
        while held < 0.9 * neuron.sum():
            held, rank = held + sorted(neuron, reverse=True)[rank], rank + 1
        ranks.append(rank)
    return float(np.median(ranks))


def plain_answer_share(run: RunSpec, reference: ReferenceModule) -> float:
    """Variance over all pairs of each pair's answer mean, over that of the activation."""
    task, activation = PlainRun(run).task, neurons(run, reference)
    replaced = answer_means(activation, task.answers, task.classes)[task.answers]
    return float(replaced.var(axis=0).sum() / activation.var(axis=0).sum())


def assert_reads(found: Snapshot, state: State, cohort: Cohort) -> None:
    for slot, run in enumerate(cohort.specs):
        reference, row = reference_in(cohort, state.weights, slot), found.row(slot)
        for name, value in plain_reading(run, reference).items():
            assert row[name] == pytest.approx(value, abs=1e-11), (run.task, name)
        assert row["fsd"] == pytest.approx(plain_fsd(run, reference), abs=1e-12), run.task
        assert row["rank"] == plain_median_rank(run, reference), run.task
        assert row["answer_share"] == pytest.approx(plain_answer_share(run, reference), rel=1e-9), run.task


# The catalogue of which it is the fast path.


@pytest.mark.parametrize("name", ["two_layers", "attention_only", "mlp_only_pooled", "norm_for_mlp", "nanda"])
@pytest.mark.parametrize("task", ["add_mod31", "mult_mod11", "S3"])
@pytest.mark.parametrize("precision", ["float64", "float32"])
def test_every_logged_column_is_the_catalogues(name: str, task: str, precision: str) -> None:
    runs = [
        small_run(task, seed, ARCHITECTURES[name], shuffled_labels=seed == 2, precision=precision) for seed in range(3)
    ]
    state, cohort = trained(list(runs))
    logged = snapshot(state.weights, cohort)
    rows = measure(Question(subject_of(runs, state.weights)), ["memorization", "norms", "fsd", "rank"])
    tolerance = 1e-11 if precision == "float64" else 1e-5
    for slot, row in enumerate(rows):
        columns = logged.row(slot)
        assert set(columns) <= set(row), "every logged column is one of the catalogue's"
        for column, value in columns.items():
            assert value == pytest.approx(row[column], rel=tolerance, abs=tolerance, nan_ok=True), column


def test_undefined_columns_are_the_catalogues() -> None:
    state, cohort = trained([small_run("add_mod11", seed, TWO_LAYERS) for seed in range(3)])
    views = cohort.layout.views(state.weights)
    views["blocks.0.mlp.W_in"][0] = 0  # constant neurons
    views["blocks.1.mlp.W_in"][1, 0, 0] = torch.nan
    logged = snapshot(state.weights, cohort)
    rows = measure(Question(subject_of(cohort.specs, state.weights)), ["memorization", "norms", "fsd", "rank"])
    for slot, row in enumerate(rows):
        columns = logged.row(slot)
        assert columns == pytest.approx({name: row[name] for name in columns}, rel=1e-9, abs=1e-11, nan_ok=True)
    assert np.isnan([rows[0]["fsd"], rows[1]["norm"], rows[1]["train_accuracy"]]).all()


@pytest.mark.parametrize("name", ["two_layers", "attention_only", "mlp_only_pooled", "norm_for_mlp", "nanda"])
def test_a_mixed_cohort_is_read_as_each_run_by_its_reference_module(name: str) -> None:
    runs = [*mixed_runs(ARCHITECTURES[name]), small_run("div_mod11", 7, ARCHITECTURES[name])]
    state, cohort = trained(runs)
    assert_reads(snapshot(state.weights, cohort), state, cohort)


@pytest.mark.parametrize("task", ["add_mod31", "mult_mod31", "poly_a2+b2_mod11", "S3"])
def test_a_cohort_of_one_task_is_read_alike(task: str) -> None:
    # add_mod31: whole answers at once, in three chunks of which the last is padded; mult_mod31: unequal counts;
    # poly: unequal counts inside the group, so that sums would be ranked unlike means.
    state, cohort = trained([small_run(task, seed, TWO_LAYERS) for seed in range(3)])
    found = snapshot(state.weights, cohort)
    assert_reads(found, state, cohort)
    assert len(set(found.fsd.tolist())) > 1


def test_the_dominant_mode_is_the_frequency_less_one() -> None:
    run = small_run("add_mod11", 3, TWO_LAYERS)
    state, cohort = trained([run, None], steps=60)
    reference, task = reference_in(cohort, state.weights, 0), PlainRun(run).task
    power = fourier_powers(answer_means(neurons(run, reference), task.answers, 11))
    votes = Counter(int(np.argmax(column)) for column in power.T)
    assert votes[int(snapshot(state.weights, cohort).fsd_mode[0]) - 1] == max(votes.values())


def test_together_equals_alone() -> None:
    runs = [*mixed_runs(TWO_LAYERS), small_run("add_mod31", 4, TWO_LAYERS)]
    state, cohort = trained(runs)
    together = snapshot(state.weights, cohort)
    for slot, run in enumerate(runs):
        alone = snapshot(state.weights[slot : slot + 1], Cohort([run]))
        assert together.row(slot) == pytest.approx(alone.row(0), abs=1e-12)


def test_shuffled_labels_are_trained_on_and_never_validated() -> None:
    run = small_run("add_mod11", 1, shuffled_labels=True, learning_rate=0.01, weight_decay=0.0)
    state, cohort = trained([run], steps=150)
    found = snapshot(state.weights, cohort).row(0)
    data, reference = PlainRun(run), reference_in(cohort, state.weights, 0)
    right = reference(data.given).argmax(dim=1)
    assert found["train_accuracy"] == pytest.approx((right == data.labels)[data.train].double().mean().item())
    assert found["train_accuracy"] > 0.9  # of the shuffled labels: they can be memorised
    assert found["validation_accuracy"] == pytest.approx(
        (right == data.answers)[data.validation].double().mean().item()
    )
    assert found["validation_accuracy"] < 0.5
    assert_reads(snapshot(state.weights, cohort), state, cohort)


def test_float32_is_read_to_its_own_precision() -> None:
    runs = mixed_runs(TWO_LAYERS, precision="float32")
    state, cohort = trained(runs)
    found = snapshot(state.weights, cohort)
    for slot, run in enumerate(runs):
        expected = plain_reading(run, reference_in(cohort, state.weights.double(), slot))
        assert {name: found.row(slot)[name] for name in expected} == pytest.approx(expected, rel=1e-4)
    assert found.norm.dtype == torch.float64


def test_reading_twice_gives_the_same_bits_and_leaves_the_weights() -> None:
    state, cohort = trained(mixed_runs(TWO_LAYERS))
    before = state.weights.clone()
    one, other = snapshot(state.weights, cohort), snapshot(state.weights, cohort)
    assert torch.equal(state.weights, before)
    for slot in range(3):
        assert one.row(slot) == other.row(slot)


def test_the_setting_of_matrix_products_is_put_back() -> None:
    state, cohort = fresh(mixed_runs(precision="tf32"))
    before = torch.get_float32_matmul_precision()
    snapshot(state.weights, cohort)
    assert torch.get_float32_matmul_precision() == before


# Where FSD is undefined.


@pytest.mark.parametrize("precision", ["float64", "float32"])
@pytest.mark.parametrize("task", ["add_mod11", "mult_mod11", "S3"])
def test_neurons_that_never_vary_have_no_fsd(task: str, precision: str) -> None:
    blind = ARCHITECTURES["mlp_only"]  # its read position never sees a and b
    state, cohort = fresh([small_run(task, seed, blind, precision=precision) for seed in range(2)])
    found = snapshot(state.weights, cohort)
    assert found.fsd.isnan().all()
    assert found.train_loss.isfinite().all()


def test_a_model_of_biases_alone_has_no_fsd() -> None:
    runs = mixed_runs()
    state, cohort = fresh(runs)
    for name, view in cohort.layout.views(state.weights).items():
        if "W_" in name:
            view[:2] = 0
    found = snapshot(state.weights, cohort)
    assert found.fsd.isnan().tolist() == [True, True, False]
    assert found.validation_loss.isfinite().all()
    assert found.train_accuracy[:2].max() < 1


def test_nan_weights_make_their_own_runs_numbers_nan() -> None:
    state, cohort = trained(mixed_runs(TWO_LAYERS))
    healthy = snapshot(state.weights, cohort)
    state.weights[1] = torch.nan
    sick = snapshot(state.weights, cohort)
    for slot in (0, 2):
        assert sick.row(slot) == healthy.row(slot)
    for name in ("train_loss", "validation_loss", "norm", "fsd"):
        assert np.isnan(sick.row(1)[name]), name


def test_nan_weights_have_no_accuracy() -> None:
    state, cohort = fresh(mixed_runs())
    state.weights[1] = torch.nan
    row = snapshot(state.weights, cohort).row(1)
    assert np.isnan(row["train_accuracy"])
    assert np.isnan(row["validation_accuracy"])


def test_answers_larger_than_a_chunk_are_read() -> None:
    tiny = replace(SMALL, width=2, heads=1, mlp_width=3)
    state, cohort = fresh([small_run("add_mod257", seed, tiny) for seed in range(4)])
    found = snapshot(state.weights, cohort)
    for slot, run in enumerate(cohort.specs):
        expected = plain_reading(run, reference_in(cohort, state.weights, slot))
        assert {name: found.row(slot)[name] for name in expected} == pytest.approx(expected, abs=1e-11)
