"""Several runs in one stack on a CPU, as an accelerator trains them."""

from collections.abc import Callable, Sequence

from grokscope.jobs import runner
from grokscope.jobs.training_stack import Options
from grokscope.runs import Measuring, Store
from grokscope.specs import RunSpec


def train_stack(store: Store, specs: Sequence[RunSpec], should_stop: Callable[[], bool] = lambda: False) -> None:
    options = Options("cpu", "weights", lambda message: None, should_stop, False, None, Measuring())
    assert runner._train_stack(specs, store, options, {})
