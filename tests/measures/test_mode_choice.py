from collections import Counter

import numpy as np
import pytest
import torch
from plain_runs import ARCHITECTURES

from grokscope.activations import RunStack
from grokscope.errors import InputError
from grokscope.measures.mode_choice import chosen_modes, key_modes, top_modes
from grokscope.specs import Architecture
from measured_stacks import trained_stack as trained
from measured_stacks import with_nan

HIDDEN = "blocks.0.mlp.hook_post"
ONE_NEURON = Architecture(layers=1, width=8, heads=2, mlp_width=1)  # whose key modes are one: all must be told apart


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
    site, n = subject.hidden_sites[1], len(symbols)
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
    basis, site = subject.task.basis(), subject.hidden_sites[1]
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
