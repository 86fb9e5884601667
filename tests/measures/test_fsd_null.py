import pytest
import torch

from grokscope.measures import fsd_null
from grokscope.measures.nulls import exact_test, gaussian_null, strongest_mode_chances, uniform_null
from grokscope.measures.question import Question
from grokscope.measures.surrogates import answer_permutation_null, untrained_null
from grokscope.measures.synchronization import fsd
from measured_stacks import DRAWS, SITE, asked, columns_of, known, question_of, trained


def direct_null(question: Question) -> dict[str, torch.Tensor]:
    waves, spec = question.spectrum(), question.spec
    found, neurons = fsd(waves.density), waves.power.shape[-1]
    dimensions = question.subject.task.basis().modes.dimensions
    gaussian = gaussian_null(waves.dimensions, neurons)
    untrained = untrained_null(spec, draws=DRAWS)
    renamed = answer_permutation_null(question.subject.read(SITE), question.subject.task, draws=DRAWS)
    return {
        "p_uniform": uniform_null(neurons, len(dimensions)).p_value(found.fsd),
        "p_exact": exact_test(found, strongest_mode_chances(tuple(dimensions.tolist()))).p_value,
        "p_gaussian": gaussian.p_value(found.fsd),
        "gaussian_95": torch.quantile(gaussian.values, 0.95),
        "p_untrained": untrained.p_value(found.fsd),
        "untrained_95": torch.quantile(untrained.values, 0.95),
        "p_renamed": renamed.p_value(found.fsd),
        "renamed_95": torch.quantile(renamed.values, 0.95, dim=-1),
    }


def test_the_columns_are_the_nulls_behind_them(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(fsd_null, "NULL_DRAWS", DRAWS)
    task = "add_mod11"
    expected = direct_null(question_of(task))
    assert set(columns_of(task, "fsd_null")) == set(expected)
    for run, row in enumerate(asked(task, "fsd_null")):
        for column, value in known(trained(task), run, **expected).items():
            assert row[column] == pytest.approx(value, rel=1e-6, abs=1e-9), column
