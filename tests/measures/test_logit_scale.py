from dataclasses import replace

import pytest
import torch
from plain_runs import PLAIN_MLP, SMALL, PlainRun, fresh, small_run

from grokscope.activations import subject_of
from grokscope.measures.catalogue import measure
from grokscope.measures.question import Question
from grokscope.specs import Architecture


@pytest.mark.parametrize(
    ("task", "architecture"),
    [("add_mod11", SMALL), ("add_mod11", replace(SMALL, temperature=2.5)), ("parity_n5_k2", PLAIN_MLP)],
)
def test_it_is_the_mean_norm_of_the_plain_modules_logits(task: str, architecture: Architecture) -> None:
    run = small_run(task, 1, architecture)
    plain = PlainRun(run)
    expected = plain.reference(plain.given).detach().norm(dim=1).mean()
    state, _ = fresh([run])
    (row,) = measure(Question(subject_of([run], state.weights)), ["logit_scale"])
    assert row["logit_scale"] == pytest.approx(float(expected), rel=1e-9)


def test_a_temperature_divides_it() -> None:
    found = []
    for temperature in (1.0, 4.0):
        run = small_run("add_mod11", 1, replace(SMALL, temperature=temperature))
        state, _ = fresh([run])
        found += measure(Question(subject_of([run], state.weights)), ["logit_scale"])
    scales = torch.tensor([float(row["logit_scale"]) for row in found])
    torch.testing.assert_close(scales[0], 4 * scales[1])
