import numpy as np
import pytest
import torch

from grokscope.activations import Trajectory
from grokscope.errors import InputError
from grokscope.measures.catalogue import measure
from grokscope.measures.question import Question
from grokscope.measures.updates import WINDOW, update_spectrum, updates
from measured_stacks import trained

DRAW = np.random.default_rng(0)
WALK = torch.from_numpy(DRAW.normal(size=(14, 30)).cumsum(axis=0))
STEPS = tuple(int(step) for step in DRAW.choice(np.arange(1, 200), 14, replace=False).cumsum())


def along(measured: tuple[int, ...], weights: torch.Tensor = WALK, steps: tuple[int, ...] = STEPS) -> list[dict]:
    """The rows of some steps of a walk, asked of a stack that is as long and of which nothing else is read."""
    walk = {
        step: {"embed.W_E": row[:20], "blocks.0.attn.W_O": row[20:]} for step, row in zip(steps, weights, strict=True)
    }
    subject = trained("add_mod11").select([0] * len(measured))
    question = Question(subject, trajectory=Trajectory(steps, walk.__getitem__, measured))
    return measure(question, ["updates", "update_spectrum", "attention_updates"])


def angle(one: np.ndarray, other: np.ndarray) -> float:
    return float(one @ other / np.linalg.norm(one) / np.linalg.norm(other))


def test_every_row_is_a_loop_over_the_walk() -> None:
    walk = WALK.numpy()
    for place, row in enumerate(along(STEPS)):
        if place < 1:
            assert all(np.isnan(row[column]) for column in row if column != "undefined")
            continue
        moved = walk[place] - walk[place - 1]
        assert row["update_speed"] == pytest.approx(np.linalg.norm(moved) / (STEPS[place] - STEPS[place - 1]))
        assert row["update_relative"] == pytest.approx(np.linalg.norm(moved) / np.linalg.norm(walk[place - 1]))
        assert row["update_decay_cosine"] == pytest.approx(angle(moved, -walk[place - 1]))
        if place > 1:
            assert row["update_cosine"] == pytest.approx(angle(moved, walk[place - 1] - walk[place - 2]))
        else:
            assert np.isnan(row["update_cosine"])
        if place < WINDOW:
            assert np.isnan(row["update_top_share"])
            assert np.isnan(row["attention_gap_23"])
            continue
        last = slice(place - WINDOW, place + 1)
        rates = np.diff(walk[last], axis=0) / np.diff(STEPS[last])[:, None]
        sigma = np.linalg.svd(rates, compute_uv=False)
        assert row["update_top_share"] == pytest.approx(sigma[0] ** 2 / (sigma**2).sum())
        assert row["update_gap"] == pytest.approx((sigma[:-1] / sigma[1:]).max(), rel=1e-6)
        assert row["update_gap_place"] == 1 + (sigma[:-1] / sigma[1:]).argmax()
        attention = rates[:, 20:]
        gram = np.sort(np.linalg.eigvalsh(attention @ attention.T))[::-1]
        assert row["attention_gap_23"] == pytest.approx(gram[1] - gram[2])
        assert row["attention_top_share"] == pytest.approx(gram[0] / gram.sum())


def test_a_row_depends_neither_on_its_neighbours_nor_on_their_order() -> None:
    everything = dict(zip(STEPS, along(STEPS), strict=True))
    for measured in ((STEPS[-1],), (STEPS[12], STEPS[3]), (STEPS[11], STEPS[11])):
        for step, row in zip(measured, along(measured), strict=True):
            assert row == everything[step]


def test_decay_alone_pulls_straight_back() -> None:
    weights = 0.9 ** torch.arange(12.0)[:, None].double() * WALK[0]
    steps = torch.arange(12.0)
    found = updates(weights, steps)
    assert float(found.decay_cosine) == pytest.approx(1)
    assert float(found.cosine) == pytest.approx(1)
    assert float(found.relative) == pytest.approx(0.1)
    assert float(update_spectrum(weights, steps).top_share) == pytest.approx(1)


def test_steps_at_right_angles_share_evenly() -> None:
    weights = torch.cat([torch.zeros(1, 10), torch.eye(10).cumsum(dim=0)])
    steps = torch.arange(11.0)
    assert float(updates(weights, steps).cosine) == pytest.approx(0, abs=1e-12)
    found = update_spectrum(weights, steps)
    assert float(found.top_share) == pytest.approx(0.1)
    assert float(found.gap) == pytest.approx(1)


def test_a_longer_time_between_checkpoints_weighs_no_more() -> None:
    rates, times = torch.from_numpy(DRAW.normal(size=(10, 12))), torch.arange(1, 11.0).double()
    start = torch.zeros(1, 12).double()
    uneven = torch.cat([start, (rates * times[:, None]).cumsum(dim=0)])
    even = torch.cat([start, rates.cumsum(dim=0)])
    clock = torch.cat([torch.zeros(1), times.cumsum(dim=0)])
    assert torch.allclose(update_spectrum(uneven, clock).values, update_spectrum(even, torch.arange(11.0)).values)


@pytest.mark.parametrize(("lengths", "gap"), [([5.0, 3.0, 2.0], 5.0), ([5.0, 3.0], 9.0), ([5.0, 2.0, 2.0], 0.0)])
def test_the_gap_below_the_second_eigenvalue(lengths: list[float], gap: float) -> None:
    steps = torch.arange(len(lengths) + 1.0)
    weights = torch.cat(
        [torch.zeros(1, 3), (torch.tensor(lengths)[:, None] * torch.eye(3)[: len(lengths)]).cumsum(dim=0)]
    )
    assert float(update_spectrum(weights, steps).gap_23) == pytest.approx(gap, abs=1e-9)


def test_a_model_without_attention_has_no_attention_updates() -> None:
    walk = {step: {"unembed.W_U": row} for step, row in zip(STEPS, WALK, strict=True)}
    question = Question(trained("add_mod11").select([0]), trajectory=Trajectory(STEPS, walk.__getitem__, STEPS[-1:]))
    with pytest.raises(InputError, match=r"there are parameters named ….attn.W… in no checkpoint of this model"):
        measure(question, ["attention_updates"])


def test_k_directions_stand_above_the_gap() -> None:
    directions = torch.linalg.qr(torch.from_numpy(DRAW.normal(size=(40, 10)))).Q.T
    lengths = torch.tensor([5.0, 4.0, 3.0, *[0.1] * 7]).double()
    weights = torch.cat([torch.zeros(1, 40), (lengths[:, None] * directions).cumsum(dim=0)])
    found = update_spectrum(weights, torch.arange(11.0))
    assert float(found.gap_place) == 3
    assert float(found.gap) == pytest.approx(30)


def test_a_walk_that_stands_still_or_is_not_a_number_is_undefined() -> None:
    still = torch.ones(11, 4)
    assert updates(still, torch.arange(11.0)).cosine.isnan()
    found = update_spectrum(still, torch.arange(11.0))
    assert torch.stack([found.top_share, found.gap, found.gap_place]).isnan().all()
    broken = torch.where(torch.arange(11)[:, None] == 10, torch.nan, WALK[:11])
    assert update_spectrum(broken, torch.arange(11.0)).top_share.isnan()
    rows = along(STEPS, torch.where(torch.arange(14)[:, None] == 13, torch.nan, WALK))
    assert [row["undefined"] == "" for row in rows] == [False] * WINDOW + [True] * 3 + [False]


def test_what_is_no_run_has_no_updates() -> None:
    with pytest.raises(InputError, match=r"^'updates' needs a stored run's earlier checkpoints, which run 0 does not"):
        measure(Question(trained("add_mod11")), ["updates"])


@pytest.mark.parametrize(
    ("steps", "measured", "sentence"),
    [
        ((0, 2, 2), (0,), "stored steps must be in ascending order"),
        ((0, 2), (3,), "what is measured must be a stored step"),
        ((0, 2), (0, 2), "a trajectory must name the step of each of 1 checkpoints, got 2"),
    ],
)
def test_a_trajectory_that_is_none_is_rejected(
    steps: tuple[int, ...], measured: tuple[int, ...], sentence: str
) -> None:
    with pytest.raises(InputError, match=sentence):
        Question(trained("add_mod11").select([0]), trajectory=Trajectory(steps, WALK.__getitem__, measured))
