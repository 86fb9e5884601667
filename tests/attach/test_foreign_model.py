from typing import get_args

import pytest
import torch
from own_models import SITE, attended, pairs_of

from grokscope import Monitor
from grokscope.activations import NEEDS, Need
from grokscope.attach import ForeignModel, foreign_measures
from grokscope.attach.foreign_model import OFFERS, foreign_measure
from grokscope.attach.preservation import preserve_state
from grokscope.errors import InputError
from grokscope.measures import MEASURES, Question, measure, scores


def evaluated(task: str = "add_mod7", **options: object) -> ForeignModel:
    model = attended(task)
    with preserve_state(model):
        return Monitor(task, SITE, ["trig"], **options)._pass().evaluate(model).at(SITE)


def test_every_measure_is_answered_or_rejected_in_one_sentence() -> None:
    question = Question(evaluated(train=pairs_of("add_mod7")[2]))
    for name, entry in MEASURES.items():
        if entry.needs <= question.subject.offers:
            (row,) = measure(question, [name])
            assert row["undefined"] == "", name
        else:
            with pytest.raises(InputError, match=f"'{name}' needs .*, which Attended does not offer$"):
                measure(question, [name])


def test_what_any_model_has_is_what_the_entries_need() -> None:
    assert {"fsd", "rank", "trig", "excluded", "logits"} <= set(foreign_measures())
    for name, entry in MEASURES.items():
        assert (name in foreign_measures()) == (entry.needs <= OFFERS)
        assert entry.needs <= set(get_args(Need)) == set(NEEDS)
    with pytest.raises(
        InputError, match=r"^'patching' needs edited passes and weights by name, which only grokscope's"
    ):
        foreign_measure("patching")


def test_the_split_is_offered_where_it_is_known() -> None:
    known, unknown = evaluated(train=pairs_of("add_mod7")[2]), evaluated()
    assert known.offers - unknown.offers == {"split"}
    assert unknown.is_train.all()
    assert torch.equal(scores(unknown).train_loss, scores(unknown).loss)
    assert scores(unknown).validation_loss.isnan()
    assert torch.equal(scores(known).loss, scores(unknown).loss)


def test_edited_passes_are_rejected() -> None:
    subject = evaluated()
    edits = {SITE: lambda value, rows: value}
    for ask in (subject.logits, subject.graded, lambda edits: subject.read(SITE, edits)):
        with pytest.raises(InputError, match=r"^edited passes need grokscope's own transformer, and Attended"):
            ask(edits)


def test_its_logits_and_activations_are_the_models() -> None:
    subject, model = evaluated(chunk=20), attended().eval()
    tokens = torch.tensor(subject.task.tokens)
    with torch.no_grad():
        assert torch.allclose(subject.logits()[0], model(tokens), atol=1e-6)
    assert subject.read(SITE).shape == (1, 49, 32)
    assert torch.allclose(subject.means(SITE).means.mean(dim=1), subject.read(SITE).double().mean(dim=1), atol=1e-9)
