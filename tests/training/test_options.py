"""Every option is its run's own: a stack of runs that differ in one each, and each run alone in plain PyTorch."""

from dataclasses import replace

import pytest
import torch
from plain_runs import (
    SMALL,
    TWO_LAYERS,
    PlainRun,
    assert_near,
    assert_same_bits,
    by_name,
    copy_of,
    fresh,
    in_slot,
    reference_in,
    small_run,
    with_new_seed,
)
from torch import Tensor

from grokscope.errors import InputError
from grokscope.model import forward
from grokscope.specs import Initialization, RunSpec
from grokscope.training import Cohort, Info, State, advance, loop

STEPS = 45
OPTIONS: dict[str, RunSpec] = {
    "defaults": small_run(seed=4),
    "learning_rate": small_run(seed=4, learning_rate=5e-3),
    "betas": small_run(seed=4, beta1=0.5, beta2=0.98),
    "no_first_moment": small_run(seed=4, beta1=0.0),
    "epsilon": small_run(seed=4, epsilon=1e-3),
    "weight_decay": small_run(seed=4, weight_decay=7.0),
    "decay_parameters": small_run(seed=4, decay_parameters="matrices", weight_decay=7.0),
    "schedule": small_run(seed=4, weight_decay_schedule=((11, 20.0), (30, 0.0))),
    "warm_up": small_run(seed=4, warmup_steps=25),
    "replacement": small_run(seed=4, sampling="replacement"),
    "shuffled_labels": small_run(seed=4, shuffled_labels=True),
    "embedding_std": small_run(seed=4, initialization=Initialization(embedding_std=0.02)),
    "normal_initialization": small_run(seed=4, initialization=Initialization(scheme="normal")),
    "split_seed": with_new_seed(small_run(seed=4), split=5),
    "initialization_seed": with_new_seed(small_run(seed=4), initialization=5),
    "data_order_seed": with_new_seed(small_run(seed=4), data_order=5),
    "fewer_steps": small_run(seed=4, steps=23),
    "full_batch": small_run("S3", seed=4, train_fraction=0.45, batch_size=None),  # 16 of 36 pairs
}


@pytest.fixture(scope="module")
def stack() -> tuple[State, Cohort, Info]:
    state, cohort = fresh(list(OPTIONS.values()))
    state, info = advance(state, cohort, STEPS)
    return state, cohort, info


@pytest.mark.parametrize("option", OPTIONS)
def test_an_option_does_what_it_does_alone(option: str, stack: tuple[State, Cohort, Info]) -> None:
    state, cohort, info = stack
    slot, run = list(OPTIONS).index(option), OPTIONS[option]
    steps = min(STEPS, run.training.steps)
    plain = PlainRun(run).trained(steps)
    assert_near(in_slot(cohort, state.weights, slot), by_name(plain.reference), 1e-10)
    assert info.loss[slot, :steps].tolist() == pytest.approx(plain.losses, abs=1e-10)
    assert info.loss[slot, steps:].isnan().all()
    assert state.step[slot] == steps
    if option != "defaults":
        assert (state.weights[slot] - state.weights[0]).abs().max() > 1e-5


def test_sparing_biases_and_norms_is_not_sparing_nothing(stack: tuple[State, Cohort, Info]) -> None:
    state, cohort, _ = stack
    spared, decayed = (
        in_slot(cohort, state.weights, list(OPTIONS).index(name)) for name in ("decay_parameters", "weight_decay")
    )
    assert spared["ln_final.w"].norm() > 1.1 * decayed["ln_final.w"].norm()


def test_a_full_batch_is_the_whole_training_set_at_every_step(stack: tuple[State, Cohort, Info]) -> None:
    plain = PlainRun(OPTIONS["full_batch"])
    assert stack[1].key.batch == 16
    assert [sorted(plain.batch(step)) for step in range(3)] == [list(range(16))] * 3


def test_a_batch_size_beyond_the_training_set_is_the_full_batch() -> None:
    whole = small_run("S3", 1, batch_size=None)
    state, cohort = fresh([whole, replace(whole, training=replace(whole.training, batch_size=512))])
    advance(state, cohort, 5)
    assert cohort.key.batch == 18
    assert torch.equal(state.weights[0], state.weights[1])


def test_the_scheduled_decay_is_in_force_from_its_step_on() -> None:
    state, cohort = fresh([small_run(weight_decay=1.0, weight_decay_schedule=((6, 9.0),)), small_run()])
    seen = []
    for _ in range(8):
        advance(state, cohort, 1)
        seen.append(state.weight_decay.tolist())
    # The seventh step, number 6, is the first with the new λ.
    assert seen == [[1.0, 1.0]] * 6 + [[9.0, 1.0]] * 2


def test_a_decay_changed_between_calls_holds_from_there_on() -> None:
    state, cohort = fresh([small_run(seed=1), small_run(seed=1)])
    advance(state, cohort, 10)
    state.weight_decay[1] = 6.0
    advance(state, cohort, 10)
    scheduled = PlainRun(small_run(seed=1, weight_decay_schedule=((10, 6.0),))).trained(20)
    assert_near(in_slot(cohort, state.weights, 1), by_name(scheduled.reference), 1e-11)
    assert_near(in_slot(cohort, state.weights, 0), by_name(PlainRun(small_run(seed=1)).trained(20).reference), 1e-11)


def test_a_finished_run_idles_with_every_bit_kept() -> None:
    state, cohort = fresh([small_run(seed=1, steps=12), small_run(seed=2)])
    advance(state, cohort, 12)
    finished = copy_of(state)
    state, info = advance(state, cohort, 9)
    assert_same_bits(state, finished, slots=[0])
    assert info.loss[0].isnan().all()
    assert info.failed_at == (None, None)
    assert state.alive.tolist() == [True, True]
    assert state.step.tolist() == [12, 21]


def test_clipping_is_torchs() -> None:
    runs = [small_run(seed=seed, architecture=TWO_LAYERS, clip_norm=norm) for seed, norm in enumerate((0.05, 0.4, 1e9))]
    state, cohort = fresh(runs)
    advance(state, cohort, 20)
    for slot, run in enumerate(runs):
        assert_near(in_slot(cohort, state.weights, slot), by_name(PlainRun(run).trained(20).reference), 1e-10)
    unclipped, cohort = fresh([replace(run, training=replace(run.training, clip_norm=None)) for run in runs])
    advance(unclipped, cohort, 20)
    assert_same_bits(state, unclipped, slots=[2])
    for slot in (0, 1):  # Adam forgets a constant scale, but not one that varies
        assert (state.second[slot] - unclipped.second[slot]).abs().max() > 1e-5


# Dropout. Masks are caught where the loop hands them to the forward pass.


class Caught:
    """What dropout made of every branch, step by step."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.seen: list[dict[int, tuple[Tensor, Tensor]]] = []

        def catching(*arguments, dropout, **options):
            def caught(out: Tensor, branch: int) -> Tensor:
                dropped = dropout(out, branch)
                self.seen[-1][branch] = (out.detach().clone(), dropped.detach().clone())
                return dropped

            self.seen.append({})
            return forward(*arguments, dropout=caught, **options)

        monkeypatch.setattr(loop, "forward", catching)

    def kept(self, step: int, branch: int, slot: int) -> Tensor:
        """The mask [positions, inputs, width]."""
        return self.seen[step][branch][1][slot] != 0


@pytest.fixture
def caught(monkeypatch: pytest.MonkeyPatch) -> Caught:
    return Caught(monkeypatch)


def test_dropout_zeroes_its_share_and_keeps_the_mean(caught: Caught) -> None:
    shares = (0.1, 0.5)
    runs = [small_run("add_mod11", 1, TWO_LAYERS, dropout=share) for share in shares]
    state, cohort = fresh(runs)
    advance(state, cohort, 12)
    for slot, share in enumerate(shares):
        kept = torch.cat([caught.kept(step, branch, slot).flatten() for step in range(12) for branch in range(4)])
        sigma = (share * (1 - share) / kept.numel()) ** 0.5
        assert abs((~kept).double().mean().item() - share) < 4 * sigma
        for branch in range(4):
            out, dropped = (part[slot] for part in caught.seen[3][branch])
            mask = caught.kept(3, branch, slot)
            assert torch.allclose(dropped[mask], out[mask] / (1 - share), rtol=1e-12)
        ones = kept.double() / (1 - share)  # what a constant output becomes
        assert abs(ones.mean().item() - 1) < 4 * sigma / (1 - share)


def test_dropout_depends_on_nothing_but_the_order_seed_and_the_step(caught: Caught) -> None:
    own = small_run("add_mod11", 1, TWO_LAYERS, dropout=0.3)
    alike = with_new_seed(own, split=7, initialization=8)
    state, cohort = fresh([own, alike, with_new_seed(own, data_order=9)])
    advance(state, cohort, 6)
    masks = {(t, b, slot): caught.kept(t, b, slot) for t in range(6) for b in range(4) for slot in range(3)}
    assert all(torch.equal(masks[t, b, 0], masks[t, b, 1]) for t in range(6) for b in range(4))
    assert not any(torch.equal(masks[t, b, 0], masks[t, b, 2]) for t in range(6) for b in range(4))
    mine = [mask[-1] for (_, _, slot), mask in masks.items() if slot == 0]  # at the read position all have one shape
    assert not any(torch.equal(one, other) for i, one in enumerate(mine) for other in mine[:i])
    caught.seen.clear()
    state, cohort = fresh([own])
    advance(state, cohort, 2)
    advance(state, cohort, 4)
    assert all(torch.equal(caught.kept(t, b, 0), masks[t, b, 0]) for t in range(6) for b in range(4))


def test_gradients_under_dropout_equal_the_reference_modules_with_the_same_masks(caught: Caught) -> None:
    run = small_run("add_mod7", 1, TWO_LAYERS, dropout=0.25, beta1=0.0)
    state, cohort = fresh([run, with_new_seed(run, initialization=2)])
    advance(state, cohort, 1)
    references = [reference_in(cohort, state.weights, slot) for slot in range(2)]
    advance(state, cohort, 1)  # the second batch is partial: 8 of 16 rows count
    for slot, reference in enumerate(references):
        for branch in range(4):
            block = reference.blocks[branch // 2]
            place = block.hook_mlp_out if branch % 2 else block.hook_attn_out
            place.register_forward_hook(masking(caught.kept(1, branch, slot)[:, :8]))
        PlainRun(run).loss(reference, 1).backward()
        gradients = by_name(reference, lambda parameter: parameter.grad)
        assert_near(in_slot(cohort, state.first, slot), gradients, 1e-12)


def masking(kept: Tensor):
    """A hook for [inputs, positions, width]; the stack's last block has the read position only."""

    def hook(module, arguments, out: Tensor) -> Tensor:
        mask = torch.ones(3, *kept.shape[1:], dtype=torch.bool)
        mask[-len(kept) :] = kept
        return out * mask.transpose(0, 1) / 0.75

    return hook


def test_no_dropout_equals_dropout_of_nothing() -> None:
    without, cohort = fresh([small_run(seed=1), small_run(seed=2)])
    advance(without, cohort, 10)
    nothing, cohort = fresh([small_run(seed=1, dropout=1e-300), small_run(seed=2, dropout=0.2)])
    advance(nothing, cohort, 10)
    assert_same_bits(without, nothing, slots=[0])
    assert not torch.equal(without.weights[1], nothing.weights[1])


@pytest.mark.parametrize("field", ["attention", "mlp"])
def test_dropout_acts_on_norm_branches(field: str, caught: Caught) -> None:
    state, cohort = fresh([small_run(architecture=replace(SMALL, **{field: "norm"}), dropout=0.5)])
    advance(state, cohort, 1)
    assert set(caught.seen[0]) == {0, 1}


# Who may share a stack.


@pytest.mark.parametrize(
    "other",
    [
        small_run(architecture=TWO_LAYERS),
        small_run(precision="float32"),
        small_run(batch_size=8),
        small_run("add_mod139"),
        small_run(dropout=0.1),
        small_run(clip_norm=1.0),
    ],
    ids=["architecture", "precision", "batch", "bucket", "dropout", "clipping"],
)
def test_different_kinds_do_not_share_a_stack(other: RunSpec) -> None:
    with pytest.raises(InputError, match="got 2 kinds"):
        Cohort([small_run(), other])


def test_a_cohort_needs_a_run() -> None:
    with pytest.raises(InputError, match="at least one run"):
        Cohort([None, None])
