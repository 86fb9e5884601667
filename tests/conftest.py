import os

# Before numpy and torch are imported: two workers on two cores must not ask for four threads.
os.environ.setdefault("OMP_NUM_THREADS", "1")

import pytest
from hypothesis import settings

# A slow or busy machine is no defect of the code; pytest's own timeout catches what hangs.
settings.register_profile("grokscope", deadline=None)
settings.load_profile("grokscope")


@pytest.fixture(scope="module")
def recorded(tmp_path_factory: pytest.TempPathFactory):
    """A store of small runs that were measured while they were trained; see `recorded_runs`."""
    from recorded_runs import train_recorded

    return train_recorded(tmp_path_factory.mktemp("recorded"))
