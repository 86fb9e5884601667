"""What a task asks of the model and the loss is said in one sentence, with the options that give it."""

from dataclasses import replace

import pytest

from grokscope.errors import InputError
from grokscope.specs import Architecture, RunSpec, Training
from grokscope.tasks import named_task, reject_unsuited

MLP, MSE = Architecture(kind="mlp"), Training(loss="mse")


@pytest.mark.parametrize(
    ("spec", "sentence"),
    [
        (RunSpec("parity_n4_k2"), "parity_n4_k2 has vectors: kind must be mlp (--kind mlp), got transformer"),
        (
            RunSpec("ridge_d4_n8", architecture=MLP),
            "ridge_d4_n8 has real answers: loss must be mse (--loss mse), got cross_entropy",
        ),
        (
            RunSpec("ridge_d4_n8"),
            "ridge_d4_n8 has vectors and real answers: kind must be mlp (--kind mlp) and loss "
            "must be mse (--loss mse), got transformer and cross_entropy",
        ),
    ],
)
def test_what_is_missing_is_named(spec: RunSpec, sentence: str) -> None:
    with pytest.raises(InputError) as rejection:
        reject_unsuited(spec, named_task(spec.task))
    assert str(rejection.value) == sentence
    reject_unsuited(replace(spec, architecture=MLP, training=MSE), named_task(spec.task))


def test_tokens_and_classes_are_learnt_by_every_model_and_loss() -> None:
    for architecture in (Architecture(), MLP):
        for training in (Training(), MSE):
            spec = RunSpec("add_mod7", architecture=architecture, training=training)
            reject_unsuited(spec, named_task(spec.task))
