"""Where a plan runs: on this machine, as a SLURM job array, on a Ray cluster.

An executor is a function of a plan and of somebody to report to, which says whether the plan is finished.
"""

from grokscope.executors.local import cores, run_locally
from grokscope.executors.ray import run_on_ray
from grokscope.executors.shards import Shard, shards_of
from grokscope.executors.slurm import run_on_slurm

__all__ = ["Shard", "cores", "run_locally", "run_on_ray", "run_on_slurm", "shards_of"]
