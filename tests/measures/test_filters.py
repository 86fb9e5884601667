from collections import Counter
from functools import lru_cache

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from plain_runs import ARCHITECTURES, TWO_LAYERS, fresh, small_run
from torch import Tensor

from grokscope.activations import RunStack, subject_of
from grokscope.errors import InputError
from grokscope.measures.filters import (
    chosen_modes,
    kept_means,
    key_modes,
    mode_filter,
    mode_part,
    neuron_edit,
    pair_part,
    read_neurons,
    top_modes,
)
from grokscope.model import site_names
from grokscope.specs import Architecture
from grokscope.tasks import Basis, named_task
from grokscope.training import advance

HIDDEN = "blocks.0.mlp.hook_post"
ONE_NEURON = Architecture(layers=1, width=8, heads=2, mlp_width=1)  # whose key modes are one: all must be told apart
random_seeds = st.integers(0, 2**32 - 1)
few = settings(max_examples=25, deadline=None)


@lru_cache
def trained(task: str, runs: int = 2, steps: int = 40, architecture: Architecture = TWO_LAYERS) -> RunStack:
    state, cohort = fresh([small_run(task, seed, architecture) for seed in range(runs)])
    advance(state, cohort, steps)
    return subject_of(cohort.specs, state.weights)


def with_nan(subject: RunStack, run: int) -> RunStack:
    weights = {name: value.clone() for name, value in subject.weights.items()}
    for value in weights.values():
        value[run] = torch.nan
    return RunStack(weights, subject.architecture, subject.task, subject.is_train, subject.labels, subject.names)


def drawn(seed: int, *shape: int) -> Tensor:
    return torch.from_numpy(np.random.default_rng(seed).normal(size=shape))


def drawn_modes(seed: int, runs: int, basis: Basis) -> Tensor:
    return torch.from_numpy(np.random.default_rng(seed).random((runs, len(basis.modes))) < 0.5)


def edited(subject: RunStack, site: str, edit) -> Tensor:
    """The site's value at every position after an edit, as neurons."""
    several = site not in ("logits", "ln_final.hook_normalized")
    parts = [values[site] for _, values in subject.parts([site], {site: edit}, every_position=several)]
    return torch.cat([(part.movedim(1, 2) if several else part[:, :, None]).flatten(3) for part in parts], dim=1)


# Projections, from their definitions.


def projected(function: np.ndarray, frequency: int) -> np.ndarray:
    """The part of a function on Z_n at one frequency, by sums over its elements."""
    n = len(function)
    out = np.zeros(n)
    for s in range(n):
        for t in range(n):
            weight = 1 / n if 2 * frequency == n else 2 / n
            out[s] += weight * np.cos(2 * np.pi * frequency * (s - t) / n) * function[t]
    return out


def symmetric_three_characters(task) -> list[np.ndarray]:
    """The sign and the two-dimensional character of S3, from the elements' orders; in the order of their irreps."""
    order = np.array(task.group.orders)
    return [np.where(order == 2, -1, 1), np.array([{1: 2, 2: 0, 3: -1}[int(k)] for k in order])]


@few
@given(st.sampled_from([5, 6, 7, 10, 11]), st.integers(1, 3), random_seeds)
def test_on_cyclic_groups_a_part_is_a_sum_of_cosines(n: int, neurons: int, seed: int) -> None:
    basis, functions = named_task(f"add_mod{n}").basis(), drawn(seed, 2, n, neurons)
    modes = drawn_modes(seed, 2, basis)
    found = mode_part(functions, basis, modes)
    for run in range(2):
        for j in range(neurons):
            own = functions[run, :, j].numpy()
            expected = sum((projected(own, f + 1) for f in range(n // 2) if modes[run, f]), np.zeros(n))
            assert found[run, :, j].numpy() == pytest.approx(expected, abs=1e-12)


@few
@given(random_seeds)
def test_on_a_group_a_part_is_a_sum_of_characters(seed: int) -> None:
    task = named_task("S3")
    functions, table, inverse = drawn(seed, 6, 2), task.group.table, task.group.inverse
    basis, characters = task.basis(), symmetric_three_characters(task)
    for number, mode in enumerate(basis.modes.modes):
        character = characters[0 if mode.irrep_dimension == 1 else 1]
        expected = np.zeros((6, 2))
        for c in range(6):
            for other in range(6):
                weight = mode.irrep_dimension / 6 * character[table[c, inverse[other]]]
                expected[c] += weight * functions[other].numpy()
        alone = torch.arange(len(basis.modes)) == number
        assert mode_part(functions, basis, alone).numpy() == pytest.approx(expected, abs=1e-12)


@few
@given(random_seeds)
def test_multiplication_is_filtered_along_the_discrete_logarithm(seed: int) -> None:
    task, p, g = named_task("mult_mod11"), 11, 2  # 2 generates the units modulo 11
    functions = drawn(seed, p, 2)
    units = [pow(g, k, p) for k in range(p - 1)]
    for f in range(5):
        part = mode_part(functions, task.basis(), torch.arange(5) == f)
        for j in range(2):
            assert part[units, j].numpy() == pytest.approx(projected(functions[units, j].numpy(), f + 1), abs=1e-12)
        assert not part[0].any()


tasks = st.sampled_from(["add_mod7", "add_mod10", "sub_mod11", "mult_mod11", "div_mod7", "S3", "Q8", "A4"])


@few
@given(tasks, random_seeds)
def test_complementary_choices_add_up(name: str, seed: int) -> None:
    task = named_task(name)
    basis, means = task.basis(), drawn(seed, 2, task.classes, 3)
    modes = drawn_modes(seed, 2, basis)
    part, rest = mode_part(means, basis, modes), mode_part(means, basis, ~modes)
    inside = torch.from_numpy(np.array(basis.answers))
    assert torch.allclose(kept_means(means, part, basis), means - rest, atol=1e-12)
    assert torch.allclose(kept_means(means, part + rest, basis), means, atol=1e-12)
    outside = [s for s in range(task.classes) if s not in inside]
    assert torch.equal(kept_means(means, part, basis)[:, outside], means[:, outside])
    without = kept_means(means, part, basis, with_mean=False)
    assert without[:, inside].mean(dim=1).abs().max() < 1e-12


@few
@given(tasks, random_seeds)
def test_projections_are_idempotent(name: str, seed: int) -> None:
    task = named_task(name)
    basis, means = task.basis(), drawn(seed, 2, task.classes, 3)
    modes = drawn_modes(seed, 2, basis)
    once = mode_part(means, basis, modes)
    assert torch.allclose(mode_part(once, basis, modes), once, atol=1e-12)
    assert mode_part(means - once, basis, modes).abs().max() < 1e-12
    assert mode_part(once, basis, ~modes).abs().max() < 1e-12


@few
@given(st.sampled_from([5, 6, 7]), random_seeds)
def test_the_filter_over_pairs_is_a_sum_over_products_of_waves(n: int, seed: int) -> None:
    basis, function = named_task(f"add_mod{n}").basis(), drawn(seed, n, n)
    modes = drawn_modes(seed, 1, basis)[0]
    waves = [np.full(n, n**-0.5)]
    for f in range(1, n // 2 + 1):
        for wave in (np.cos, np.sin):
            values = wave(2 * np.pi * f * np.arange(n) / n)
            if modes[f - 1] and np.linalg.norm(values) > 1e-9:
                waves.append(values / np.linalg.norm(values))
    expected = np.zeros((n, n))
    for one in waves:
        for other in waves:
            expected += (one @ function.numpy() @ other) * np.outer(one, other)
    found = pair_part(function[..., None], basis, modes)[..., 0] + function.mean()
    assert found.numpy() == pytest.approx(expected, abs=1e-12)


@few
@given(st.sampled_from(["add_mod6", "add_mod7", "S3", "Q8"]), random_seeds)
def test_the_filter_over_pairs_is_a_projection(name: str, seed: int) -> None:
    task = named_task(name)
    basis, functions = task.basis(), drawn(seed, 2, task.symbols, task.symbols, 2)
    modes = drawn_modes(seed, 2, basis)
    once = pair_part(functions, basis, modes)
    assert torch.allclose(pair_part(once, basis, modes), once, atol=1e-12)
    everything = pair_part(functions, basis, torch.ones_like(modes))
    assert torch.allclose(everything, functions - functions.mean(dim=(1, 2), keepdim=True), atol=1e-12)
    assert pair_part(functions, basis, torch.zeros_like(modes)).abs().max() < 1e-12


def test_filtering_pairs_and_answers_agree_on_functions_of_the_answer() -> None:
    task = named_task("add_mod11")
    basis, of_answer = task.basis(), drawn(3, 11, 2)
    over_pairs = of_answer[torch.tensor(task.answers)].view(11, 11, 2)
    modes = drawn_modes(3, 1, basis)[0]
    expected = mode_part(of_answer, basis, modes)[torch.tensor(task.answers)].view(11, 11, 2)
    assert torch.allclose(pair_part(over_pairs, basis, modes), expected, atol=1e-12)


# Edits, at every site.


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


# Which modes.


def votes_of(subject: RunStack, run: int) -> tuple[Counter, np.ndarray]:
    """How many neurons are strongest at each frequency, and each frequency's power, by numpy's transform."""
    values, answers = subject.read(HIDDEN)[run].numpy(), subject.task.answers
    means = np.stack([values[answers == s].mean(axis=0) for s in range(subject.task.classes)])
    power = np.abs(np.fft.rfft(means, axis=0)[1:]) ** 2
    return Counter(power.argmax(axis=0).tolist()), power.sum(axis=1)


@pytest.mark.parametrize("count", [1, 2, 4, 7, 15])
def test_top_modes_have_most_neurons_then_most_power(count: int) -> None:
    subject = trained("add_mod31", 3, 10)
    found = top_modes(subject, HIDDEN, count)
    for run in range(3):
        votes, power = votes_of(subject, run)
        best = sorted(range(15), key=lambda f: (-votes[f], -power[f]))[:count]
        assert found[run].nonzero()[:, 0].tolist() == sorted(best)
    by_power = top_modes(subject, HIDDEN, count, rank_by="power")
    for run in range(3):
        best = np.argsort(-votes_of(subject, run)[1])[:count]
        assert by_power[run].nonzero()[:, 0].tolist() == sorted(best)


def test_empty_places_are_filled_by_power() -> None:
    narrow = Architecture(layers=1, width=8, heads=1, mlp_width=2)  # two neurons vote for at most two frequencies
    subject = trained("add_mod31", 2, 5, narrow)
    found = top_modes(subject, HIDDEN, 7)
    assert found.sum(dim=1).tolist() == [7, 7]
    for run in range(2):
        votes, power = votes_of(subject, run)
        others = [f for f in np.argsort(-power) if f not in votes]
        assert set(found[run].nonzero()[:, 0].tolist()) == set(votes) | set(others[: 7 - len(votes)])


def test_who_has_no_power_has_no_top_modes() -> None:
    blind = trained("add_mod7", 2, 0, ARCHITECTURES["mlp_only"])
    assert not top_modes(blind, HIDDEN, 2).any()
    assert not key_modes(blind, HIDDEN).any()
    sick = with_nan(trained("add_mod7", 3), 1)
    assert top_modes(sick, HIDDEN, 2).sum(dim=1).tolist() == [2, 0, 2]
    assert (key_modes(sick).sum(dim=1) > 0).tolist() == [True, False, True]
    with pytest.raises(InputError, match="run 1 has activations"):
        key_modes(sick.select([1]))
    with pytest.raises(InputError, match="at least 1, got 0"):
        top_modes(blind, HIDDEN, 0)


@pytest.mark.parametrize(("name", "symbols"), [
    ("add_mod11", list(range(11))), ("sub_mod11", list(range(11))), ("mult_mod11", [pow(2, k, 11) for k in range(10)]),
])  # fmt: skip
def test_key_modes_are_the_winners_of_eight_terms(name: str, symbols: list[int]) -> None:
    subject = trained(name, 12, 5, ONE_NEURON)
    site, n = subject.last_site, len(symbols)
    place = {(a, b): i for i, (a, b) in enumerate(subject.task.inputs.tolist())}
    rows = [place[a, b] for a in symbols for b in symbols]
    a, b = (v.ravel() for v in np.meshgrid(np.arange(n), np.arange(n), indexing="ij"))
    for run in range(12):
        values = subject.read(site)[run, rows].numpy()
        values = values - values.mean(axis=0)
        shares = []
        for f in range(1, n // 2 + 1):
            of = {v: (np.cos(2 * np.pi * f * x / n), np.sin(2 * np.pi * f * x / n)) for v, x in (("a", a), ("b", b))}
            terms = [*of["a"], *of["b"], *(x * y for x in of["a"] for y in of["b"])]
            terms = np.stack([t for t in terms if np.linalg.norm(t) > 1e-6], axis=1)
            fitted = terms @ np.linalg.lstsq(terms, values, rcond=None)[0]
            shares.append((fitted**2).sum(axis=0) / (values**2).sum(axis=0) / terms.shape[1])
        winners = sorted(set(np.argmax(shares, axis=0).tolist()))
        assert key_modes(subject)[run].nonzero()[:, 0].tolist() == winners


def test_key_modes_of_a_group_are_the_winners_of_its_functions_of_a_b_and_both() -> None:
    subject = trained("S3", 12, 5, ONE_NEURON)
    basis, site = subject.task.basis(), subject.last_site
    values = subject.read(site).view(12, 6, 6, -1).numpy()
    constant = np.full((6, 6), 1 / 6)
    for run in range(12):
        centred = values[run] - values[run].mean(axis=(0, 1))
        shares = []
        for number, mode in enumerate(basis.modes.modes):
            own = basis.modes.projector(number)
            total = 0
            for left, right in ((own, constant), (constant, own), (own, own)):
                total += (np.einsum("xa,yb,abj->xyj", left, right, centred) ** 2).sum(axis=(0, 1))
            shares.append(total / (2 * mode.dimension + mode.dimension**2))
        assert key_modes(subject)[run].nonzero()[:, 0].tolist() == sorted(set(np.argmax(shares, axis=0).tolist()))


def test_modes_are_chosen_for_each_run_for_all_or_by_number() -> None:
    subject = trained("add_mod7", 3)
    basis = subject.task.basis()
    shared = torch.tensor([[True, False, True]])
    assert chosen_modes(subject, HIDDEN, shared, basis=basis).tolist() == [[True, False, True]] * 3
    assert torch.equal(chosen_modes(subject, HIDDEN, 2, basis=basis), top_modes(subject, HIDDEN, 2))
    for wrong in (torch.ones(1, 4, dtype=torch.bool), torch.ones(2, 3, dtype=torch.bool)):
        with pytest.raises(InputError, match=r"\[3 runs, 3 modes of the additive basis\], got"):
            chosen_modes(subject, HIDDEN, wrong, basis=basis)


def test_models_without_neurons_are_filtered_at_attention() -> None:
    assert key_modes(trained("add_mod7", 2, 5, ARCHITECTURES["attention_only"])).any()


def on_cuda(subject: RunStack) -> RunStack:
    weights = {name: value.cuda() for name, value in subject.weights.items()}
    tables = (subject.is_train.cuda(), subject.labels.cuda())
    return RunStack(weights, subject.architecture, subject.task, *tables, subject.names)


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
