from dataclasses import replace

import pytest
import torch
from plain_runs import ARCHITECTURES, by_name, fresh, mixed_runs, reference_in, small_run

from grokscope.activations import subject_of
from grokscope.measures import snapshot
from grokscope.measures.norms import norms
from grokscope.training import advance
from measured_stacks import stack_of


@pytest.mark.parametrize("name", ARCHITECTURES)
def test_every_norm_is_a_loop_over_the_reference_module(name: str) -> None:
    runs = [small_run("add_mod11", seed, ARCHITECTURES[name]) for seed in range(2)]
    state, cohort = fresh(runs)
    found = norms(subject_of(runs, state.weights))
    blocks = {"embed", "pos_embed", "unembed", *(f"{kind}.{i}" for kind in ("blocks", "layers") for i in range(8))}
    for slot in range(2):
        parameters = by_name(reference_in(cohort, state.weights, slot))
        assert found.by_parameter.keys() == parameters.keys()
        squares: dict[str, float] = {}
        for parameter, value in parameters.items():
            square = sum(x * x for x in value.flatten().tolist())
            assert float(found.by_parameter[parameter][slot]) == pytest.approx(square**0.5, rel=1e-12)
            of_norm = ".ln" in parameter or parameter.startswith("ln")
            block = "norms" if of_norm else next(b for b in blocks if parameter.startswith(f"{b}."))
            squares[block] = squares.get(block, 0) + square
        assert {block: float(norm[slot]) for block, norm in found.by_block.items()} == pytest.approx(
            {block: square**0.5 for block, square in squares.items()}
        )
        assert float(found.total[slot]) == pytest.approx(sum(squares.values()) ** 0.5, rel=1e-12)
        assert sum(float(share[slot]) for share in found.shares.values()) == pytest.approx(1)


def test_it_is_the_norm_of_the_snapshot() -> None:
    for run in mixed_runs():
        state, cohort = fresh([run])
        advance(state, cohort, 10)
        found = norms(subject_of([run], state.weights))
        assert found.total.tolist() == pytest.approx(snapshot(state.weights, cohort).norm.tolist(), rel=1e-14)


def test_blocks_stand_in_the_order_of_the_forward_pass() -> None:
    eight = replace(ARCHITECTURES["one_layer"], layers=8)
    found = norms(stack_of([small_run("add_mod11", 0, eight)]))
    layers = [f"blocks.{i}" for i in range(8)]
    assert list(found.by_block) == ["embed", "pos_embed", *layers, "norms", "unembed"]


def test_padding_is_no_parameter() -> None:
    subject = stack_of([small_run("add_mod11", 0)])
    before = norms(subject)
    subject.weights["embed.W_E"][:, 12:] = 5
    subject.weights["unembed.W_U"][..., 11:] = 5
    subject.weights["unembed.b_U"][..., 11:] = 5
    after = norms(subject)
    assert torch.equal(before.total, after.total)
    assert all(torch.equal(norm, after.by_parameter[name]) for name, norm in before.by_parameter.items())
    subject.weights["embed.W_E"][:, 11] = 5  # the separator is one
    assert norms(subject).total > before.total


def test_float32_weights_are_summed_in_float64() -> None:
    found = norms(stack_of([small_run("add_mod11", 0, precision="float32")]))
    assert found.total.dtype == torch.float64
    assert all(norm.dtype == torch.float64 for norm in found.by_block.values())


def test_a_run_of_nan_is_nan_alone() -> None:
    subject = stack_of([small_run("add_mod11", seed) for seed in range(3)])
    healthy = norms(subject)
    subject.weights["blocks.0.mlp.W_in"][1, 0, 0] = torch.nan
    sick = norms(subject)
    assert sick.total.isnan().tolist() == [False, True, False]
    assert torch.equal(sick.total[[0, 2]], healthy.total[[0, 2]])
    assert sick.by_block["blocks.0"].isnan().tolist() == [False, True, False]
    assert torch.equal(sick.by_block["embed"], healthy.by_block["embed"])


@pytest.mark.gpu
def test_a_gpu_reads_alike() -> None:
    runs = [small_run("add_mod11", seed) for seed in range(2)]
    state, _ = fresh(list(runs))
    here, there = norms(subject_of(runs, state.weights)), norms(subject_of(runs, state.weights.cuda()))
    assert torch.allclose(here.total, there.total.cpu())
