"""Mirrors of our own log in W&B, TensorBoard and trackio: a process beside the training, which may fail alone."""

from grokscope.jobs.trackers.kinds import TRACKERS, Tracker, Word
from grokscope.jobs.trackers.mirror import mirrored

__all__ = ["TRACKERS", "Tracker", "Word", "mirrored"]
