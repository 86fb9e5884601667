"""A plan before it is trained: checked, kept in its store, and its run folders made, so that `watch` shows them."""

from grokscope.jobs.checks import reject_impossible
from grokscope.runs import is_remote, keep_plan, open_store, run_name
from grokscope.specs import Plan
from grokscope.training.devices import is_available

__all__ = ["prepare_plan"]

MOST_FOLDERS = 1000  # made before training begins; two files each, flushed, and a plan may name a hundred thousand


def prepare_plan(plan: Plan, is_here: bool = True) -> list[str]:
    """The names of the runs to train, once nothing speaks against the plan and it is kept; of a remote store, none.

    What a cluster has is known there alone, so its device is not checked here.
    """
    device = plan.device if is_here or is_available(plan.device) else "cpu"
    with open_store(plan.out) as store:
        reject_impossible(plan.runs, store, device, (*plan.measures, *plan.milestones))
        keep_plan(plan, store)
        store.reopen()
        if is_remote(plan.out):
            return []
        waiting = [spec for spec in plan.runs if not store.is_finished(spec)]
        for spec in waiting if len(waiting) <= MOST_FOLDERS else ():
            store.add(spec, plan.memberships.get(spec, ()))
    return [run_name(spec) for spec in waiting]
