import numpy as np
import pytest
import torch
from plain_runs import TWO_LAYERS
from torch import Tensor

from grokscope.activations import RunStack
from grokscope.errors import InputError
from grokscope.measures.filters import mode_filter, neuron_edit, read_neurons
from grokscope.measures.mode_choice import key_modes, top_modes
from grokscope.measures.projections import mode_part
from grokscope.model import site_names
from grokscope.tasks import Basis, named_task
from measured_stacks import on_cuda, with_nan
from measured_stacks import trained_stack as trained

HIDDEN = "blocks.0.mlp.hook_post"


def drawn_modes(seed: int, runs: int, basis: Basis) -> Tensor:
    return torch.from_numpy(np.random.default_rng(seed).random((runs, len(basis.modes))) < 0.5)


def edited(subject: RunStack, site: str, edit) -> Tensor:
    """The site's value at every position after an edit, as neurons."""
    several = site not in ("logits", "ln_final.hook_normalized")
    parts = [values[site] for _, values in subject.parts([site], {site: edit}, every_position=several)]
    return torch.cat([(part if several else part[:, :, None]).flatten(3) for part in parts], dim=1)


@pytest.mark.parametrize("site", site_names(TWO_LAYERS))
@pytest.mark.parametrize("every_position", [False, True])
def test_keeping_every_mode_leaves_the_conditioned_mean(site: str, every_position: bool) -> None:
    subject = trained("add_mod7")
    original = edited(subject, site, lambda value, rows: value)
    basis, answers = subject.task.basis(), subject.answers
    edit = mode_filter(subject, site, torch.ones(1, 3, dtype=torch.bool), every_position=every_position)
    expected = original.clone()
    for s in range(7):
        rows = (answers == s).nonzero()[:, 0]
        expected[:, rows] = original[:, rows].mean(dim=1, keepdim=True)
    if not every_position:
        expected[:, :, :-1] = original[:, :, :-1]
    found = edited(subject, site, edit)
    assert torch.allclose(found, expected, atol=1e-12)
    assert len(basis.modes) == 3


@pytest.mark.parametrize("site", site_names(TWO_LAYERS))
@pytest.mark.parametrize(("kind", "change", "choice"), [
    ("answer_mean", "remove", False), ("input_pairs", "remove", False), ("input_pairs", "keep", True),
])  # fmt: skip
def test_removing_nothing_and_the_full_filter_over_pairs_change_nothing(site, kind, change, choice) -> None:
    subject = trained("add_mod7")
    modes = torch.full((1, 3), choice)
    edit = mode_filter(subject, site, modes, change, kind=kind, every_position=True)
    original = edited(subject, site, lambda value, rows: value)
    assert torch.allclose(edited(subject, site, edit), original, atol=1e-12)
    assert torch.allclose(subject.logits({site: edit}), subject.logits(), atol=1e-10)


@pytest.mark.parametrize("site", site_names(TWO_LAYERS))
@pytest.mark.parametrize("every_position", [False, True])
def test_editing_nothing_changes_no_bit(site: str, every_position: bool) -> None:
    subject = trained("S3")
    edit = neuron_edit(subject, site, lambda value, rows: value, every_position=every_position)
    assert torch.equal(subject.logits({site: edit}), subject.logits())


@pytest.mark.parametrize("site", [HIDDEN, "blocks.1.attn.hook_pattern", "logits"])
def test_an_edit_sees_what_is_read(site: str) -> None:
    subject = trained("mult_mod7")
    for every_position in (False, True):
        values, seen = read_neurons(subject, site, every_position=every_position), []
        edit = neuron_edit(subject, site, lambda v, rows: seen.append((rows, v)) or v, every_position=every_position)  # noqa: B023
        subject.logits({site: edit})
        assert torch.equal(torch.cat([value for _, value in seen], dim=1), values)


@pytest.mark.parametrize("name", ["add_mod7", "mult_mod7", "div_mod7", "S3", "poly_a2+b2_mod7"])
def test_each_run_and_answer_is_filtered_as_by_hand(name: str) -> None:
    subject = trained(name)
    basis, original = subject.task.basis(), subject.read(HIDDEN)
    modes = drawn_modes(5, 2, basis)
    modes[0, 0], modes[1, 0] = True, False
    kept = subject.read(HIDDEN, {HIDDEN: mode_filter(subject, HIDDEN, modes, "keep")})
    only = subject.read(HIDDEN, {HIDDEN: mode_filter(subject, HIDDEN, modes, "only")})
    removed = subject.read(HIDDEN, {HIDDEN: mode_filter(subject, HIDDEN, modes, "remove")})
    inside = list(basis.answers)
    for run in range(2):
        means = np.stack([original[run][subject.answers == s].mean(dim=0).numpy() for s in range(subject.task.classes)])
        projector = sum((basis.modes.projector(m) for m in range(len(basis.modes)) if modes[run, m]), np.zeros(()))
        part = np.zeros_like(means)
        part[inside] = np.broadcast_to(projector, (len(inside),) * 2) @ means[inside]
        lone, with_mean = means.copy(), means.copy()
        lone[inside] = part[inside]
        with_mean[inside] = part[inside] + means[inside].mean(axis=0)  # the same weight for every answer
        answers = subject.task.answers
        assert kept[run].numpy() == pytest.approx(with_mean[answers], abs=1e-12)
        assert only[run].numpy() == pytest.approx(lone[answers], abs=1e-12)
        assert removed[run].numpy() == pytest.approx(original[run].numpy() - part[answers], abs=1e-12)


def test_what_was_removed_is_gone_and_what_was_kept_stays() -> None:
    subject, answers = trained("mult_mod7"), torch.tensor(named_task("mult_mod7").answers)
    basis = subject.task.basis()
    modes = torch.tensor([[True, False, True]])
    for change in ("keep", "remove"):
        edit = mode_filter(subject, HIDDEN, modes, change)
        found = subject.read(HIDDEN, {HIDDEN: edit})
        means = torch.stack([found[:, answers == s].mean(dim=1) for s in range(7)], dim=1)
        gone = ~modes if change == "keep" else modes
        assert mode_part(means, basis, gone.expand(2, -1)).abs().max() < 1e-12
        assert mode_part(means, basis, ~gone.expand(2, -1)).abs().max() > 1e-6


def test_multiplication_may_be_read_by_sums() -> None:
    subject = trained("mult_mod7")
    modes = torch.tensor([[True, False, False]])
    found = subject.read(HIDDEN, {HIDDEN: mode_filter(subject, HIDDEN, modes, by="sum")})
    sums = torch.tensor(subject.task.sums)
    means = subject.means(HIDDEN, "sum").means
    basis = named_task("add_mod7").basis()
    expected = mode_part(means, basis, modes) + means.mean(dim=1, keepdim=True)
    assert torch.allclose(found, expected[:, sums], atol=1e-12)


def test_the_filter_over_pairs_needs_all_symbols_and_all_pairs() -> None:
    with pytest.raises(InputError, match="all 7 symbols of mult_mod7"):
        mode_filter(trained("mult_mod7"), HIDDEN, 1, kind="input_pairs")
    with pytest.raises(InputError, match=r"div_mod7 lacks 7 of the pairs"):
        mode_filter(trained("div_mod7"), HIDDEN, 1, kind="input_pairs", basis=named_task("div_mod7").basis("additive"))
    additive = named_task("mult_mod7").basis("additive")
    subject = trained("mult_mod7")
    edit = mode_filter(subject, HIDDEN, torch.ones(1, 3, dtype=torch.bool), kind="input_pairs", basis=additive)
    assert torch.allclose(subject.logits({HIDDEN: edit}), subject.logits(), atol=1e-10)


def test_a_stack_is_filtered_as_each_run_alone() -> None:
    subject = trained("add_mod7", 3)
    modes = drawn_modes(1, 3, subject.task.basis())
    for kind in ("answer_mean", "input_pairs"):
        together = subject.logits({HIDDEN: mode_filter(subject, HIDDEN, modes, kind=kind)})
        for run in range(3):
            alone = subject.select([run])
            edit = mode_filter(alone, HIDDEN, modes[run : run + 1], kind=kind)
            assert torch.allclose(together[run], alone.logits({HIDDEN: edit})[0], atol=1e-10)


def test_a_run_of_nan_stays_alone() -> None:
    healthy = trained("add_mod7", 3)
    sick = with_nan(healthy, 1)
    for kind in ("answer_mean", "input_pairs"):
        one = healthy.logits({HIDDEN: mode_filter(healthy, HIDDEN, 2, kind=kind)})
        other = sick.logits({HIDDEN: mode_filter(sick, HIDDEN, 2, kind=kind)})
        assert torch.equal(one[[0, 2]], other[[0, 2]])
        assert other[1].isnan().all()
        with pytest.raises(InputError, match=rf"run 1 has activations at {HIDDEN}"):
            mode_filter(sick.select([1]), HIDDEN, torch.ones(1, 3, dtype=torch.bool), kind=kind)


@pytest.mark.gpu
def test_a_gpu_filters_as_a_cpu() -> None:
    for task in ("add_mod7", "mult_mod7", "S3"):
        subject = trained(task)
        there = on_cuda(subject)
        assert torch.equal(key_modes(there).cpu(), key_modes(subject))
        assert torch.equal(top_modes(there, HIDDEN, 1).cpu(), top_modes(subject, HIDDEN, 1))
        for kind in ("answer_mean",) if task == "mult_mod7" else ("answer_mean", "input_pairs"):
            edits = [{HIDDEN: mode_filter(one, HIDDEN, 1, kind=kind, every_position=True)} for one in (subject, there)]
            assert torch.allclose(there.logits(edits[1]).cpu(), subject.logits(edits[0]), atol=1e-9)
