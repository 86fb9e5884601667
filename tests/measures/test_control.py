import numpy as np
import pytest

from grokscope.measures.catalogue import measure
from grokscope.measures.control import control_basis
from grokscope.measures.question import Question
from grokscope.specs import ReadingSpec
from measured_stacks import RUNS, TASKS, by_answer, hidden, trained


@pytest.mark.parametrize("task", TASKS)
@pytest.mark.parametrize("run", range(RUNS))
def test_the_control_is_a_fourier_transform_over_the_answers_index(task: str, run: int) -> None:
    subject = trained(task)
    means, n = by_answer(subject, hidden(subject, run)), subject.task.symbols

    def in_order(order: np.ndarray) -> float:
        strongest = np.abs(np.fft.rfft(means[order], axis=0)[1:]).argmax(axis=0)
        chance = 1 / (n // 2)
        return (np.bincount(strongest).max() / len(strongest) - chance) / (1 - chance)

    row = measure(Question(subject), ["control", "fsd"])[run]
    drawn = [in_order(control_basis(subject.task, seed).answers) for seed in range(20)]
    assert row["control_fsd"] == pytest.approx(in_order(np.arange(n)))
    assert row["control_mean"] == pytest.approx(np.mean(drawn))
    assert row["control_max"] == pytest.approx(max(drawn))
    if task == "add_mod11":
        assert row["control_fsd"] == row["fsd"]


def test_the_control_has_as_many_orders_as_the_reading_says() -> None:
    subject = trained("S3")
    alone = [measure(Question(subject, ReadingSpec(control_relabellings=1), seed=seed), ["control"]) for seed in (4, 5)]
    both = measure(Question(subject, ReadingSpec(control_relabellings=2), seed=4), ["control"])
    for first, second, two in zip(*alone, both, strict=True):
        assert two["control_mean"] == pytest.approx((first["control_mean"] + second["control_mean"]) / 2)
        assert two["control_max"] == max(first["control_max"], second["control_max"])
