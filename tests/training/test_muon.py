"""Muon: the stack, our optimiser around a plain loop, `torch.optim.Muon` and the equations agree."""

from dataclasses import replace
from itertools import pairwise

import pytest
import torch
from plain_runs import (
    SMALL,
    TWO_LAYERS,
    PlainRun,
    assert_near,
    assert_same_bits,
    by_name,
    fresh,
    in_slot,
    padding_in,
    small_run,
)
from row_runs import row_runs
from torch import Tensor

from grokscope.errors import InputError
from grokscope.jobs import bytes_of_stack
from grokscope.model import layout_of, module_place, parameter_group, sizes_of
from grokscope.specs import RunSpec
from grokscope.steering import Muon
from grokscope.training import Cohort, advance
from grokscope.training.checkpoint import cut, padded_row
from grokscope.training.muon import EXACT, IN_BFLOAT16, Arithmetic, MuonScalars, muon_, orthogonalized

# Where a gradient is zero but for rounding, Adam with its usual ε amplifies that.
CALM = {"epsilon": 1e-3, "optimizer": "muon"}
RUNS = [
    small_run("add_mod11", 1, TWO_LAYERS, **CALM),
    small_run("mult_mod7", 2, TWO_LAYERS, weight_decay=3.0, muon_learning_rate=0.05, warmup_steps=7, **CALM),
    small_run("S3", 3, TWO_LAYERS, weight_decay=5.0, muon_momentum=0.8, embedding_decay=3.0, head_decay=0.5, **CALM),
]


class PlainMuonRun(PlainRun):
    """The run alone in plain PyTorch: our Muon for the matrices, PyTorch's AdamW for each other group."""

    def __init__(self, run: RunSpec) -> None:
        super().__init__(run)
        training, parameters = run.training, dict[str, list[Tensor]]()
        shapes = layout_of(run.architecture, sizes_of(self.task)).shapes
        own = dict(self.reference.named_parameters())
        for name, shape in shapes.items():
            parameters.setdefault(parameter_group(name, shape, sizes_of(self.task)), []).append(own[module_place(name)])
        groups = [{"params": parameters[name], "name": name} for name in ("embedding", "vector", "head")]
        betas = (training.beta1, training.beta2)
        self.adamw = torch.optim.AdamW(groups, betas=betas, eps=training.epsilon, foreach=True)
        self.muon = Muon(parameters["matrix"], momentum=training.muon_momentum)
        self.optimizer = self

    def zero_grad(self) -> None:
        self.reference.zero_grad()

    @property
    def param_groups(self) -> list:
        return []

    def step_optimizers(self) -> None:
        training = self.run.training
        warmed = min(1.0, (self.done + 1) / training.warmup_steps) if training.warmup_steps else 1.0
        decay = warmed * training.learning_rate * training.weight_decay
        for group in self.adamw.param_groups:
            factor = getattr(training, f"{group['name']}_decay")
            group.update(lr=training.learning_rate * warmed, weight_decay=training.weight_decay * factor)
        rate = training.muon_learning_rate * warmed
        self.muon.param_groups[0].update(lr=rate, weight_decay=decay * training.matrix_decay / rate)
        self.adamw.step()
        self.muon.step()

    def trained(self, steps: int) -> "PlainMuonRun":
        for _ in range(steps):
            self.zero_grad()
            self.loss(self.reference, self.done).backward()
            self.step_optimizers()
            self.done += 1
        return self


def matrix(rows: int, columns: int, seed: int = 0, dtype: torch.dtype = torch.float64) -> Tensor:
    return torch.randn(rows, columns, dtype=dtype, generator=torch.Generator().manual_seed(seed))


@pytest.mark.parametrize(("rows", "columns"), [(4, 4), (3, 9), (8, 40)])
def test_singular_values_come_near_one_and_singular_vectors_stay(rows: int, columns: int) -> None:
    x = matrix(rows, columns)
    u, values, v = torch.linalg.svd(x, full_matrices=False)
    expected = values / x.norm()
    for _ in range(5):
        expected = 3.4445 * expected - 4.7750 * expected**3 + 2.0315 * expected**5
    found = orthogonalized(x[None])[0]
    assert torch.allclose(found, u @ torch.diag(expected) @ v, atol=1e-12)
    well = expected[values / x.norm() > 0.02]
    assert well.min() > 0.5
    assert well.max() < 1.3


def test_of_zero_it_is_zero_and_scale_does_not_matter() -> None:
    assert torch.equal(orthogonalized(torch.zeros(1, 2, 3)), torch.zeros(1, 2, 3))
    x = matrix(3, 5)[None]
    assert torch.allclose(orthogonalized(x), orthogonalized(1000 * x), atol=1e-12)


@pytest.mark.parametrize("shape", [(16, 16), (16, 48), (64, 16)])
@pytest.mark.parametrize("arithmetic", [EXACT, IN_BFLOAT16], ids=["as the weights", "bfloat16"])
def test_one_step_is_that_of_torchs_own_muon(shape: tuple[int, int], arithmetic: Arithmetic) -> None:
    if not hasattr(torch.optim, "Muon"):
        pytest.skip("torch.optim.Muon came with torch 2.9")
    weights, gradient = (matrix(*shape, seed, torch.float32) for seed in (0, 1))
    theirs = torch.nn.Parameter(weights.T.clone())  # PyTorch's matrices are [out, in]
    theirs.grad = gradient.T.clone()
    torch.optim.Muon([theirs], lr=0.02, weight_decay=0.25, momentum=0.95).step()
    ours = weights[None].clone()
    scalars = MuonScalars(*(torch.tensor([value]) for value in (0.02, 1 - 0.02 * 0.25, 0.95, 1 - 0.95)))
    muon_([(ours, torch.zeros_like(ours), gradient[None])], torch.tensor([True]), scalars, arithmetic)
    update = (theirs.detach().T - weights).norm()
    assert update > 0
    assert (ours[0] - theirs.detach().T).norm() < 2e-2 * update


@pytest.mark.parametrize("precision", ["float64", "float32"])
def test_a_hundred_steps_are_those_of_a_plain_loop(precision: str) -> None:
    """Two maps fitted to random targets, by `muon_` and by the equations written out for one matrix."""
    dtype = getattr(torch, precision)
    inputs, targets = matrix(40, 12, 5, dtype), matrix(40, 6, 6, dtype)
    begin = [matrix(12, 20, 7, dtype) / 4, matrix(20, 6, 8, dtype) / 4]

    def gradients(maps: list[Tensor]) -> list[Tensor]:
        leaves = [one.detach().clone().requires_grad_() for one in maps]
        loss = ((inputs @ leaves[0]).tanh() @ leaves[1] - targets).square().mean()
        return list(torch.autograd.grad(loss, leaves))

    rate, shrink, mu = 0.02, 1 - 1e-3 * 5, 0.95
    plain, momenta = [one.clone() for one in begin], [torch.zeros_like(one) for one in begin]
    ours, buffers = [one[None].clone() for one in begin], [torch.zeros_like(one)[None] for one in begin]
    scalars = MuonScalars(*(torch.tensor([value], dtype=dtype) for value in (rate, shrink, mu, 1 - mu)))
    for _ in range(100):
        for i, g in enumerate(gradients(plain)):
            momenta[i] = momenta[i] * mu + g * (1 - mu)
            x = g * (1 - mu) + momenta[i] * mu
            x = x.T if x.shape[0] > x.shape[1] else x
            x = x / x.norm()
            for _ in range(5):
                gram = x @ x.T
                x = 3.4445 * x + (-4.7750 * gram + 2.0315 * (gram @ gram)) @ x
            x = x if x.shape == g.shape else x.T
            plain[i] = plain[i] * shrink - rate * max(1, g.shape[1] / g.shape[0]) ** 0.5 * x
        own = gradients([one[0] for one in ours])
        muon_([(w, m, g[None]) for w, m, g in zip(ours, buffers, own, strict=True)], torch.tensor([True]), scalars)
    for one, other in zip(ours, plain, strict=True):
        assert (one[0] - other).norm() / other.norm() < {"float64": 1e-10, "float32": 1e-6}[precision]


def test_a_hundred_steps_of_the_stack_are_those_of_a_plain_loop_over_each_run() -> None:
    state, cohort = fresh(RUNS)
    advance(state, cohort, 100)
    for slot, run in enumerate(RUNS):
        alone = PlainMuonRun(run).trained(100)
        assert_near(in_slot(cohort, state.weights, slot), by_name(alone.reference), 1e-9)
        assert padding_in(cohort, state.weights, slot).eq(0).all()


def test_all_of_other_models_is_moved_too() -> None:
    for name in ("mlp of vectors", "values of tokens"):
        runs = [replace(run, training=replace(run.training, optimizer="muon")) for run in row_runs(name)[:1]]
        state, cohort = fresh(runs)
        before = state.weights.clone()
        advance(state, cohort, 3)
        for group, was, is_ in zip(
            cohort.layout.shapes,
            cohort.layout.views(before).values(),
            cohort.layout.views(state.weights).values(),
            strict=True,
        ):
            assert not torch.equal(was, is_), group


def test_a_run_alone_is_the_run_in_a_stack() -> None:
    state, cohort = fresh(RUNS)
    advance(state, cohort, 20)
    for slot, run in enumerate(RUNS):
        alone, own = fresh([run])
        advance(alone, own, 20)
        assert (alone.weights[0] - state.weights[slot]).abs().max() < 1e-12


def test_an_idle_run_keeps_every_bit() -> None:
    runs = [replace(RUNS[0], training=replace(RUNS[0].training, steps=5)), RUNS[1]]
    state, cohort = fresh(runs)
    advance(state, cohort, 5)
    finished = state.row(0)
    advance(state, cohort, 4)
    assert all(torch.equal(value, state.row(0)[name]) for name, value in finished.items())


def test_a_stored_momentum_continues_bit_for_bit() -> None:
    state, cohort = fresh(RUNS)
    advance(state, cohort, 10)
    rows = [cut(state.row(slot), cohort.layout, sizes_of(cohort.tasks[slot])) for slot in range(3)]
    again, other = fresh(RUNS)
    for slot, tensors in enumerate(rows):
        again.put(slot, padded_row(tensors, other.layout, sizes_of(other.tasks[slot])))
    advance(state, cohort, 7)
    advance(again, other, 7)
    assert_same_bits(again, state)


def test_matrices_have_no_second_moment_and_everything_else_has() -> None:
    state, cohort = fresh(RUNS[:1])
    advance(state, cohort, 3)
    for name, view in cohort.layout.views(state.second).items():
        is_matrix = parameter_group(name, cohort.layout.shapes[name], cohort.key.sizes) == "matrix"
        assert (view.abs().max() == 0) == is_matrix, name


def test_bfloat16_rounds_and_leaves_the_weights_precision() -> None:
    weights = []
    for precision in ("weights", "bfloat16"):
        state, cohort = fresh([small_run("add_mod11", 1, muon_precision=precision, precision="float32", **CALM)])
        advance(state, cohort, 1)
        weights.append(state.weights)
    assert weights[0].dtype == weights[1].dtype == torch.float32
    assert 0 < (weights[0] - weights[1]).norm() < 0.05


def test_each_group_decays_by_its_own_factor() -> None:
    names = ("embedding", "matrix", "vector", "head")
    for chosen in names:
        factors = {f"{name}_decay": 2.0 if name == chosen else 0.0 for name in names}
        plain, cohort = fresh([small_run(weight_decay=0.0)])
        decayed, other = fresh([small_run(weight_decay=3.0, **factors)])
        begin = decayed.weights.clone()
        advance(plain, cohort, 1)
        advance(decayed, other, 1)
        views = [cohort.layout.views(buffer) for buffer in (begin, plain.weights, decayed.weights)]
        for name, shape in cohort.layout.shapes.items():
            was, without, with_decay = (view[name] for view in views)
            expected = without - 6e-3 * was if parameter_group(name, shape, cohort.key.sizes) == chosen else without
            assert torch.allclose(with_decay, expected, atol=1e-15), name


def test_factors_of_one_change_no_bit() -> None:
    plain, cohort = fresh([small_run(weight_decay=0.7, precision="float32")])
    factors = dict.fromkeys(("embedding_decay", "matrix_decay", "vector_decay", "head_decay"), 1.0)
    same, other = fresh([small_run(weight_decay=0.7, precision="float32", **factors)])
    advance(plain, cohort, 5)
    advance(same, other, 5)
    assert torch.equal(plain.weights, same.weights)


def test_optimisers_and_precisions_do_not_share_a_stack_and_plain_runs_ignore_muons() -> None:
    with pytest.raises(InputError, match="got 2 kinds"):
        Cohort([small_run(), small_run(optimizer="muon")])
    with pytest.raises(InputError, match="got 2 kinds"):
        Cohort([small_run(optimizer="muon"), small_run(optimizer="muon", muon_precision="bfloat16")])
    assert len(Cohort([small_run(), small_run(muon_precision="bfloat16")])) == 2


def test_muon_takes_more_memory() -> None:
    plain, muon = (bytes_of_stack([small_run(architecture=SMALL, optimizer=name)]) for name in ("adamw", "muon"))
    assert muon > plain


@pytest.mark.parametrize(
    ("fields", "sentence"),
    [
        ({"optimizer": "moun"}, "optimizer must be one of adamw, muon, adam, got 'moun'; did you mean"),
        ({"muon_learning_rate": 0.0}, "muon_learning_rate must be positive, got 0.0"),
        ({"muon_momentum": 1.0}, r"muon_momentum must lie in \[0, 1\), got 1.0"),
        ({"head_decay": -1.0}, "head_decay must be at least 0, got -1.0"),
        ({"embedding_decay": 2000.0}, "learning_rate × weight_decay × embedding_decay must stay below 1, got 2.0"),
    ],
)
def test_what_makes_no_sense_is_rejected(fields: dict, sentence: str) -> None:
    with pytest.raises(InputError, match=sentence):
        small_run(**fields)


def test_our_optimizer_is_the_stacks_update() -> None:
    weights = torch.nn.Parameter(matrix(6, 4))
    optimizer = Muon([weights], lr=0.1, weight_decay=0.5)
    stacked, momentum = weights.detach().T[None].clone(), torch.zeros(1, 4, 6, dtype=torch.float64)
    values = (torch.tensor([value], dtype=torch.float64) for value in (0.1, 1 - 0.1 * 0.5, 0.95, 1 - 0.95))
    scalars = MuonScalars(*values)
    for seed, _ in pairwise(range(5)):
        weights.grad = matrix(6, 4, seed + 10)
        optimizer.step()
        muon_([(stacked, momentum, weights.grad.T[None])], torch.tensor([True]), scalars)
    assert torch.allclose(stacked[0].T, weights.detach(), atol=1e-13)
