import hashlib

import numpy as np
import pytest

from grokscope.tasks import named_task
from grokscope.tasks.teacher import teacher_weights


def test_answers_are_the_teachers_with_noise() -> None:
    task = named_task("ridge_d50_n100_noise0.5_seed3")
    assert task.vectors is not None
    noise = task.answers[:, 0] - task.vectors @ teacher_weights(50, 3)
    assert np.std(noise) == pytest.approx(0.5, rel=0.05)
    assert task.vectors.mean() == pytest.approx(0, abs=0.02)
    assert task.vectors.std() == pytest.approx(1, abs=0.02)
    assert [(group.name, group.rule, len(group.rows)) for group in task.row_groups] == [
        ("given", "train", 100),
        ("fresh", "validation", 2000),
    ]


def test_without_noise_answers_are_exact_in_any_order_of_sums() -> None:
    task = named_task("ridge_d40_n20")
    assert task.vectors is not None
    backwards = task.vectors[:, ::-1] @ teacher_weights(40)[::-1]
    assert np.array_equal(task.answers[:, 0], backwards)


def test_success_is_a_share_of_the_variance() -> None:
    task = named_task("ridge_d10_n50_success0.2")
    assert task.success_error == pytest.approx(0.2 * task.answers.var())


def test_golden_values() -> None:
    task = named_task("ridge_d3_n4_v4")
    assert task.vectors is not None
    digest = hashlib.sha256(task.vectors.tobytes() + task.answers.tobytes()).hexdigest()
    assert digest[:16] == "2c04844a00daccea"
