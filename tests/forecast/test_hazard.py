import json

import numpy as np
import pytest
from planted_ends import planted_cases

from grokscope.errors import InputError
from grokscope.forecast.hazard import HazardForecaster, fit_hazard

CASES = planted_cases()
FITTED = fit_hazard(CASES, tier=5, every=400)


def test_what_is_stored_forecasts_as_what_was_fitted():
    again = HazardForecaster.from_json(FITTED.to_json())
    runs = [case.run.until(700) for case in CASES]
    for first, second in zip(FITTED.predict(runs, 1000), again.predict(runs, 1000), strict=True):
        assert np.isclose(first.probability, second.probability, atol=1e-3)
    assert again.to_json() == HazardForecaster.from_json(again.to_json()).to_json()
    assert again.provenance["cells"] == 5


def test_runs_that_cannot_grok_are_told_from_runs_that_do():
    late = FITTED.predict([case.run.until(2500) for case in CASES if case.end > 2500], 5000)
    here = [case for case in CASES if case.end > 2500]
    assert max(one.probability for one, case in zip(late, here, strict=True) if case.grokked is None) < 0.5
    assert min(one.probability for one, case in zip(late, here, strict=True) if case.grokked is not None) > 0.5


def test_fitting_again_gives_the_same():
    assert fit_hazard(CASES, tier=5, every=400).to_json() == FITTED.to_json()


@pytest.mark.parametrize("change", [{"format": "other"}, {"signals": ["gone"]}, {"time": [1.0]}, {"ranges": 3}])
def test_rejects_what_is_no_forecaster(change):
    text = json.dumps(json.loads(FITTED.to_json()) | change)
    with pytest.raises(InputError, match="is no forecaster that this version reads"):
        HazardForecaster.from_json(text)
    with pytest.raises(InputError, match="is no forecaster"):
        HazardForecaster.from_json("[")
