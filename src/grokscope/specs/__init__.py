"""Frozen descriptions of runs and readings: they say what to do and compute nothing."""

from grokscope.specs.architecture import Architecture, Initialization
from grokscope.specs.control import ClosedLoop
from grokscope.specs.norm_hold import NormHold
from grokscope.specs.plan import Membership, Plan
from grokscope.specs.reading import ReadingSpec
from grokscope.specs.release import Release
from grokscope.specs.run import Cadence, Fork, RunSpec, Seeds
from grokscope.specs.spec import Spec
from grokscope.specs.training import Training
from grokscope.specs.trigger import Trigger

__all__ = [
    "Architecture",
    "Cadence",
    "ClosedLoop",
    "Fork",
    "Initialization",
    "Membership",
    "NormHold",
    "Plan",
    "ReadingSpec",
    "Release",
    "RunSpec",
    "Seeds",
    "Spec",
    "Training",
    "Trigger",
]
