"""Where a plan runs."""

from grokscope.executors.local import cores, run_locally

__all__ = ["cores", "run_locally"]
