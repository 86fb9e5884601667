from itertools import product

import numpy as np
import pytest
import torch

from grokscope.errors import InputError
from grokscope.measures import fsd, spectrum
from grokscope.measures.rank import fourier_rank
from grokscope.tasks import named_task
from grokscope.tasks.modes import walsh_modes


def character(bits: np.ndarray, chosen: tuple[int, ...]) -> np.ndarray:
    return np.prod([1 - 2 * bits[:, j] for j in chosen], axis=0) if chosen else np.ones(len(bits))


def test_answers_are_the_parity_of_the_first_bits() -> None:
    task = named_task("parity_n6_k3")
    assert task.vectors is not None
    assert sorted(task.vectors.tolist()) == sorted(map(list, product([-1.0, 1.0], repeat=6)))
    assert np.array_equal(1.0 - 2.0 * task.answers, task.vectors[:, :3].prod(axis=1))


def test_tokens_say_the_same_as_vectors() -> None:
    vectors, tokens = named_task("parity_n40_k3_rows64"), named_task("parity_n40_k3_rows64_tokens")
    assert tokens.tokens is not None
    assert vectors.vectors is not None
    assert np.array_equal(1 - 2 * tokens.tokens[:, :-1], vectors.vectors)
    assert (tokens.tokens[:, -1] == 2).all()
    assert np.array_equal(tokens.answers, vectors.answers)
    assert (tokens.length, tokens.vocabulary) == (41, 3)


def test_sampled_rows_differ_and_depend_on_the_seed() -> None:
    rows = [named_task(f"parity_n20_k2_rows500{seed}").vectors for seed in ("", "_seed1")]
    assert all(len(np.unique(found, axis=0)) == 500 for found in rows)
    assert not np.array_equal(*rows)


def test_modes_are_the_characters_of_the_bits() -> None:
    modes = walsh_modes(4)
    bits = np.arange(16)[:, None] >> np.arange(4) & 1
    assert np.allclose(modes.basis.T @ modes.basis, np.eye(16))
    for mode in modes.modes:
        chosen = tuple(int(one) - 1 for one in mode.label.split("·"))
        assert np.allclose(modes.block(mode.irreps[0] - 1)[:, 0], character(bits, chosen) / 4)
    assert [mode.label for mode in modes.modes][:5] == ["1", "2", "3", "4", "1·2"]


def test_the_answer_itself_is_one_mode_of_rank_one() -> None:
    task = named_task("parity_n8_k3")
    condition = task.condition()
    means = torch.zeros(condition.size, 4, dtype=torch.float64)
    means[torch.tensor(condition.values)] = (1.0 - 2.0 * torch.tensor(task.answers).double())[:, None].expand(-1, 4)
    waves = spectrum(means, task.basis())
    found = fsd(waves.density)
    assert task.basis().modes.modes[int(found.mode)].label == "1·2·3"
    assert float(found.fsd) == 1
    assert float(fourier_rank(waves.power).median) == 1


def test_neurons_that_found_the_rule_are_told_from_untrained_ones() -> None:
    """A ReLU of relevant bits against ReLUs of all bits, as a trained and an untrained layer have them."""
    task, draw = named_task("parity_n10_k3"), np.random.default_rng(0)
    assert task.vectors is not None
    trained, untrained = draw.normal(size=(10, 256)), draw.normal(size=(10, 256))
    trained[3:] = 0
    ranks, agreements = [], []
    for weights in (trained, untrained):
        neurons = np.maximum(task.vectors @ weights + 0.3 * draw.normal(size=256), 0)
        means = torch.zeros(task.condition().size, 256, dtype=torch.float64)
        means[torch.tensor(task.condition().values)] = torch.tensor(neurons)
        waves = spectrum(means, task.basis())
        ranks.append(float(fourier_rank(waves.power).median))
        agreements.append(float(fsd(waves.density).fsd))
    assert ranks[0] <= 7 < ranks[1]
    assert agreements[0] > 0.25 > agreements[1]


@pytest.mark.parametrize(
    ("name", "sentence"),
    [
        ("parity_n4_k5", "parity of k of n bits needs k ≤ n in 'parity_n4_k5', got 5"),
        ("parity_n40_k11", "k of 'parity_n40_k11' must lie between 1 and 10, got 11"),
        ("parity_n63_k3", "n of 'parity_n63_k3' must lie between 2 and 62, got 63"),
        ("parity_n4_k2_seed1", "every input is a row of 'parity_n4_k2_seed1': nothing is drawn from seed, got 1"),
        ("parity_n5_k2_rows64", "there are 32 different rows, got 64"),
        ("parity_n05_k2", "is not a task"),
        ("parity_n40", "did you mean 'parity_n40_k3'?"),
    ],
)
def test_bad_names_are_one_sentence(name: str, sentence: str) -> None:
    with pytest.raises(InputError) as rejection:
        named_task(name)
    assert sentence in str(rejection.value)
