from dataclasses import replace
from math import log

import numpy as np
import pytest
import torch
from plain_runs import PLAIN_MLP, SMALL, small_run
from scipy.stats import entropy

from grokscope.activations import RunStack
from grokscope.measures.catalogue import measure
from grokscope.measures.question import Question
from grokscope.measures.representation import covariance, representation
from grokscope.specs import Architecture
from measured_stacks import stack_of

DRAWN = torch.from_numpy(np.random.default_rng(0).normal(size=(200, 6)))


def trained(task: str = "add_mod11", architecture: Architecture = SMALL, runs: int = 2) -> RunStack:
    return stack_of([small_run(task, seed, architecture) for seed in range(runs)], 10)


def entropy_of(rows: torch.Tensor) -> float:
    return float(representation(torch.cov(rows.T)).entropy)


@pytest.mark.parametrize(
    ("task", "architecture"),
    [("add_mod11", SMALL), ("parity_n6_k3", replace(PLAIN_MLP, layers=2)), ("twohop_e12_d2", replace(SMALL, layers=2))],
)
def test_it_is_the_entropy_of_numpys_covariance(task: str, architecture: Architecture) -> None:
    subject = trained(task, architecture)
    rows = measure(Question(subject), ["representation", "residual"])
    last = architecture.layers - 1
    site = subject.hidden_sites[1] if architecture.kind == "mlp" else f"blocks.{last}.hook_resid_post"
    for run, row in enumerate(rows):
        stream = subject.read(site)[run].numpy()
        spread = np.linalg.eigvalsh(np.cov(stream.T)).clip(0)
        assert row["residual_entropy"] == pytest.approx(entropy(spread) / np.log(stream.shape[1]), rel=1e-6)
        assert row["residual_rank"] == pytest.approx(np.exp(entropy(spread)), rel=1e-6)
        assert row["residual_top_share"] == pytest.approx(spread.max() / spread.sum(), rel=1e-9)
        hidden = subject.read(subject.hidden_sites[0])[run].numpy()
        values = np.linalg.eigvalsh(np.cov(hidden.T)).clip(0)
        assert row["representation_entropy"] == pytest.approx(entropy(values) / np.log(hidden.shape[1]), rel=1e-6)
        assert row["representation_rank"] == pytest.approx(np.exp(entropy(values)), rel=1e-6)
        assert row["representation_top_share"] == pytest.approx(values.max() / values.sum(), rel=1e-9)


def test_neither_rotation_nor_scale_nor_a_shift_changes_it() -> None:
    turn = torch.linalg.qr(torch.from_numpy(np.random.default_rng(1).normal(size=(6, 6)))).Q
    for other in (DRAWN @ turn, 5 * DRAWN, DRAWN + 3):
        assert entropy_of(other) == pytest.approx(entropy_of(DRAWN))


def test_one_direction_and_equal_ones_are_the_ends() -> None:
    assert entropy_of(DRAWN[:, :1] * torch.ones(6)) == pytest.approx(0, abs=1e-12)
    assert float(representation(torch.eye(6)).entropy) == pytest.approx(1)
    assert float(representation(torch.eye(6)).rank) == pytest.approx(6)
    half = representation(torch.diag(torch.tensor([1.0, 1.0, 0, 0, 0, 0])))
    assert float(half.entropy) == pytest.approx(log(2) / log(6))


def test_a_large_mean_costs_no_digits() -> None:
    subject = trained()

    class Shifted(type(subject)):  # type: ignore[misc]
        def read_parts(self, site: str):
            return ((rows, values.double() + 1e6) for rows, values in super().read_parts(site))

    shifted = Shifted(**{name: getattr(subject, name) for name in subject.__dataclass_fields__})
    site = subject.hidden_sites[0]
    assert torch.allclose(covariance(shifted, site), covariance(subject, site), rtol=0, atol=1e-8)


def test_what_does_not_vary_or_is_no_number_is_undefined_alone() -> None:
    found = representation(torch.stack([torch.eye(2), torch.zeros(2, 2), torch.full((2, 2), torch.nan)]))
    assert found.entropy.isnan().tolist() == [False, True, True]
    assert found.top_share.isnan().tolist() == [False, True, True]
