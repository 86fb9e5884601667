"""Numbers made of activations: pure functions, batched over any leading run axes."""

from grokscope.measures.snapshot import Snapshot, snapshot
from grokscope.measures.spectrum import mode_power
from grokscope.measures.synchronization import FsdResult, fsd

__all__ = ["FsdResult", "Snapshot", "fsd", "mode_power", "snapshot"]
