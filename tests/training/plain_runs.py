"""Runs trained one by one in plain PyTorch, from the definitions: what the stack is compared with."""

import math
from dataclasses import replace
from functools import lru_cache

import pytest
import torch
from torch import Tensor
from torch.nn.functional import cross_entropy, mse_loss, one_hot

from grokscope.model import (
    PlainMlp,
    ReferenceModule,
    initial_weights,
    layout_of,
    module_place,
    padded_sizes,
    reference_module,
    sizes_of,
)
from grokscope.randomness import bits, permutation
from grokscope.specs import Architecture, Initialization, RunSpec, Training
from grokscope.tasks import named_task, shuffled_labels, split
from grokscope.training import Cohort, State, advance, initial_state

Reference = ReferenceModule | PlainMlp
SMALL = Architecture(layers=1, width=16, heads=2, mlp_width=32)
TWO_LAYERS = replace(SMALL, layers=2)
PLAIN_MLP = Architecture(kind="mlp", layers=1, mlp_width=24)
ARCHITECTURES = {
    "one_layer": SMALL,
    "two_layers": TWO_LAYERS,
    "three_layers": replace(SMALL, layers=3),
    "attention_only": replace(TWO_LAYERS, mlp="dropped"),
    "mlp_only": replace(TWO_LAYERS, attention="dropped"),
    "mlp_only_pooled": replace(TWO_LAYERS, attention="dropped", readout="pooled"),
    "pooled_with_attention": replace(TWO_LAYERS, readout="pooled"),
    "norm_for_attention": replace(TWO_LAYERS, attention="norm"),
    "norm_for_mlp": replace(TWO_LAYERS, mlp="norm"),
    "causal": replace(TWO_LAYERS, causal=True),
    "no_biases": replace(SMALL, biases=False),
    "nanda": replace(TWO_LAYERS, causal=True, layer_norm=False, biases=False, activation="relu"),
    "no_final_norm_tempered": replace(TWO_LAYERS, final_norm=False, temperature=2.5),
    "only_final_norm": replace(TWO_LAYERS, layer_norm=False, final_norm=True),
    "square_activation": replace(SMALL, activation="square"),
    "eight_layers": replace(SMALL, layers=8),
    "mlp": PLAIN_MLP,
    "mlp_of_two_relu": replace(PLAIN_MLP, layers=2, activation="relu"),
    "quadratic": replace(PLAIN_MLP, activation="square", biases=False),
    "mlp_normed": replace(PLAIN_MLP, layers=2, hidden_norm=True),
    "mlp_embedded": replace(PLAIN_MLP, embedded=True, width=16),
    "linear": replace(PLAIN_MLP, layers=0),
    "linear_embedded": replace(PLAIN_MLP, layers=0, embedded=True, width=16),
}
NORMAL = Initialization(scheme="normal")


def small_run(
    task: str = "add_mod7", seed: int = 0, architecture: Architecture = SMALL, *, precision: str = "float64", **fields
) -> RunSpec:
    """A run of seconds: half of the pairs, batches of 16; `fields` are those of `Training`, or of the run itself."""
    own = {name: fields.pop(name) for name in tuple(fields) if name in RunSpec.__dataclass_fields__}
    training = Training(**{"steps": 1000, "batch_size": 16, **fields})
    run = RunSpec(task=task, train_fraction=0.5, architecture=architecture, training=training, precision=precision)
    return replace(run.with_seed(seed), **own)


def mixed_runs(architecture: Architecture = SMALL, **fields) -> list[RunSpec]:
    """Three tasks of different size, all with partial last batches (of 12, 8 and 2), and three weight decays."""
    initialization = Initialization() if architecture.layer_norm or architecture.kind == "mlp" else NORMAL
    fields = {"initialization": initialization, **fields}
    return [
        small_run("add_mod11", 1, architecture, **{"weight_decay": 1.0, **fields}),
        small_run("mult_mod7", 2, architecture, **{"weight_decay": 0.0, **fields}),
        small_run("S3", 3, architecture, **{"weight_decay": 5.0, **fields}),
    ]


def with_new_seed(run: RunSpec, **seeds: int) -> RunSpec:
    """The run with some of its three seeds replaced."""
    return replace(run, seeds=replace(run.seeds, **seeds))


class PlainRun:
    """One run as a plain module, PyTorch's own AdamW and a loop over epochs."""

    def __init__(self, run: RunSpec) -> None:
        self.run, self.task = run, named_task(run.task)
        self.reference = initial_reference(run)
        matrices = [parameter for parameter in self.reference.parameters() if parameter.ndim == 2]
        vectors = [parameter for parameter in self.reference.parameters() if parameter.ndim == 1]
        self.optimizer = torch.optim.AdamW(
            [{"params": parameters} for parameters in (matrices, vectors) if parameters],
            betas=(run.training.beta1, run.training.beta2),
            eps=run.training.epsilon,
            foreach=True,
        )
        drawn = split(self.task, run.train_fraction, run.seeds.split)
        self.train, self.validation = torch.tensor(drawn.train), torch.tensor(drawn.validation)
        given = self.task.vectors if self.task.tokens is None else self.task.tokens
        self.given, self.answers = torch.tensor(given), torch.tensor(self.task.answers)
        self.labels = self.answers
        if run.shuffled_labels:
            self.labels = torch.tensor(shuffled_labels(self.task, run.seeds.split))
        self.done, self.losses = 0, []

    def batch(self, step: int) -> list[int]:
        """Rows of the training set: epochs in drawn order whose last batch is partial, or draws with replacement."""
        count, seed = len(self.train), self.run.seeds.data_order
        size = min(self.run.training.batch_size or count, count)
        if self.run.training.sampling == "replacement":
            words = bits(torch.tensor(seed), "order", torch.tensor(step), size).tolist()
            return [(word % 2**64 >> 1) % 2**62 % count for word in words]
        epoch, number = divmod(step, math.ceil(count / size))
        return epoch_order(seed, epoch, count)[number * size : (number + 1) * size]

    def loss(self, reference: Reference, step: int) -> Tensor:
        """Mean loss of a step's batch, by PyTorch's own functions."""
        rows = self.train[self.batch(step)]
        outputs, labels = reference(self.given[rows]), self.labels[rows]
        if self.run.training.loss == "cross_entropy":
            return cross_entropy(outputs, labels)
        if self.run.training.loss == "stablemax":
            return stablemax(outputs, labels)
        targets = labels if self.task.is_real else one_hot(labels, self.task.classes)
        return mse_loss(outputs, targets.to(outputs.dtype))

    def step(self) -> None:
        """One optimiser step."""
        training = self.run.training
        decay = training.weight_decay
        for start, value in training.weight_decay_schedule:
            decay = value if self.done >= start else decay
        rate = training.learning_rate
        if self.done + 1 < training.warmup_steps:
            rate *= (self.done + 1) / training.warmup_steps
        for group, is_decayed in zip(
            self.optimizer.param_groups, (True, training.decay_parameters == "all"), strict=False
        ):
            group.update(lr=rate, weight_decay=decay if is_decayed else 0.0)
        self.optimizer.zero_grad()
        loss = self.loss(self.reference, self.done)
        loss.backward()
        if training.clip_norm is not None:
            torch.nn.utils.clip_grad_norm_(self.reference.parameters(), training.clip_norm)
        self.optimizer.step()
        self.done += 1
        self.losses.append(loss.item())

    def trained(self, steps: int) -> "PlainRun":
        """This run, after so many more steps."""
        for _ in range(steps):
            self.step()
        return self

    def moment(self, name: str) -> dict[str, Tensor]:
        """Adam's `exp_avg` or `exp_avg_sq`, by the layout's names."""
        return by_name(self.reference, lambda parameter: self.optimizer.state[parameter][name])


def stablemax(logits: Tensor, labels: Tensor) -> Tensor:
    """The mean cross-entropy of StableMax, number by number."""
    rows = []
    for row, label in zip(logits, labels.tolist(), strict=True):
        weights = torch.stack([logit + 1 if logit >= 0 else 1 / (1 - logit) for logit in row])
        rows.append(-(weights[label] / weights.sum()).log())
    return torch.stack(rows).mean()


@lru_cache(maxsize=1000)
def epoch_order(seed: int, epoch: int, count: int) -> list[int]:
    return permutation(torch.tensor(seed), "order", torch.tensor(epoch), count).tolist()


def initial_reference(run: RunSpec) -> Reference:
    """The run's initial weights as a module, drawn without any neighbour."""
    task, seed = named_task(run.task), torch.tensor([run.seeds.initialization])
    sizes, padded = sizes_of(task), padded_sizes(task)
    flat = initial_weights(run.architecture, run.initialization, sizes, padded, seed)
    return reference_module(run.architecture, sizes, layout_of(run.architecture, padded).views(flat))


def reference_in(cohort: Cohort, flat: Tensor, slot: int) -> Reference:
    """One slot of a stack as a module."""
    views = cohort.layout.views(flat[slot : slot + 1])
    return reference_module(cohort.architecture, sizes_of(cohort.tasks[slot]), views)


def by_name(reference: Reference, of=lambda parameter: parameter.detach()) -> dict[str, Tensor]:
    """The reference module's parameters (or their gradients) under the layout's names; its matrices are transposed."""
    parameters = dict(reference.named_parameters())
    shapes = layout_of(reference.architecture, reference.sizes).shapes
    assert len(shapes) == len(parameters)
    found = {name: of(parameters[module_place(name)]) for name in shapes}
    embeddings = ("embed.W_E", "pos_embed.W_pos")
    turned = {name: value.T if "W_" in name and name not in embeddings else value for name, value in found.items()}
    return {name: value.reshape(shapes[name]) for name, value in turned.items()}


def in_slot(cohort: Cohort, flat: Tensor, slot: int) -> dict[str, Tensor]:
    """One slot of a flat buffer by name, padding cut off."""
    views = cohort.layout.views(flat)
    return {name: view[slot][real_part(cohort, slot, name, view.ndim - 1)] for name, view in views.items()}


def real_part(cohort: Cohort, slot: int, name: str, axes: int) -> tuple:
    """Where a parameter is no padding: tokens of an embedding or of a map of one-hot vectors, columns of classes."""
    sizes = sizes_of(cohort.tasks[slot])
    part = [slice(None)] * axes
    if name == "embed.W_E" or axes == 3:
        part[-2] = slice(sizes.vocabulary)
    if name.startswith("unembed"):
        part[-1] = slice(sizes.classes)
    return tuple(part)


def padding_in(cohort: Cohort, flat: Tensor, slot: int) -> Tensor:
    """All numbers of a slot that stand for no token and no class."""
    is_padding = torch.ones(1, cohort.layout.size)
    for name, view in cohort.layout.views(is_padding).items():
        view[0][real_part(cohort, slot, name, view.ndim - 1)] = 0
    return flat[slot][is_padding[0] == 1]


def assert_near(found: dict[str, Tensor], expected: dict[str, Tensor], tolerance: float) -> None:
    """Every parameter, within an absolute tolerance."""
    assert found.keys() == expected.keys()
    for name, value in expected.items():
        assert found[name].shape == value.shape
        difference = (found[name] - value).abs().max().item()
        assert difference <= tolerance, f"{name} differs by {difference}"  # false for NaN


def fresh(runs: list[RunSpec | None]) -> tuple[State, Cohort]:
    """A stack at step 0."""
    cohort = Cohort(runs)
    return initial_state(cohort), cohort


def assert_gradients_of_the_references(runs: list[RunSpec], steps: int) -> None:
    """Loss and every gradient of so many steps of a stack; runs of β₁ = 0, so that the first moment is the gradient."""
    state, cohort = fresh(runs)
    alone = [PlainRun(run) for run in runs]
    for step in range(steps):
        references = [reference_in(cohort, state.weights, slot) for slot in range(len(runs))]
        state, info = advance(state, cohort, 1)
        for slot, (plain, reference) in enumerate(zip(alone, references, strict=True)):
            loss = plain.loss(reference, step)
            loss.backward()
            assert info.loss[slot, 0].item() == pytest.approx(loss.item(), abs=1e-12)
            gradients = by_name(reference, lambda parameter: parameter.grad)
            assert max(gradient.abs().max() for gradient in gradients.values()) > 1e-3
            assert_near(in_slot(cohort, state.first, slot), gradients, 1e-12)
            assert not padding_in(cohort, state.first, slot).any()


def assert_same_bits(one: State, other: State, slots: list[int] | None = None) -> None:
    """Equal states, or equal rows of them; NaN equals NaN."""
    for name, value in vars(one).items():
        chosen = list(range(len(value))) if slots is None else slots
        assert torch.equal(_bits_of(value[chosen]), _bits_of(getattr(other, name)[chosen])), f"{name} differs"


def copy_of(state: State) -> State:
    return State(**{name: value.clone() for name, value in vars(state).items()})


def _bits_of(value: Tensor) -> Tensor:
    whole = {torch.float64: torch.int64, torch.float32: torch.int32}
    return value.view(whole[value.dtype]) if value.dtype in whole else value
