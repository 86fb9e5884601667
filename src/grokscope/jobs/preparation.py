"""A plan before it is trained: checked, kept in its store, and its run folders made, so that `watch` shows them."""

from collections.abc import Iterable, Sequence
from dataclasses import replace
from pathlib import Path

from grokscope.errors import InputError, did_you_mean, shown
from grokscope.files import named
from grokscope.jobs.memory import bytes_of_one
from grokscope.measures.catalogue import measure_named
from grokscope.model import Sizes, layout_of, sizes_of
from grokscope.runs import Measuring, Store, is_remote, keep_plan, open_store, run_name
from grokscope.specs import Architecture, Plan, RunSpec
from grokscope.steering import has_paired_run, paired_run
from grokscope.tasks import named_task, reject_unsuited, train_size
from grokscope.training import CohortKey, cohort_key
from grokscope.training.devices import is_available, total_memory
from grokscope.training.norm_holds import reject_impossible_hold

__all__ = ["find_damaged", "prepare_plan", "reject_impossible"]

MOST_FOLDERS = 1000  # made before training begins; two files each, flushed, and a plan may name a hundred thousand


def prepare_plan(plan: Plan, is_here: bool = True) -> list[str]:
    """The names of the runs to train, once nothing speaks against the plan and it is kept; of a remote store, none.

    What a cluster has is known there alone, so its device is not checked here.

    >>> from tempfile import TemporaryDirectory
    >>> with TemporaryDirectory() as folder:
    ...     [name.rpartition("-")[0] for name in prepare_plan(Plan(folder, (RunSpec().with_seed(7),)))]
    ['add_mod97_s7']
    """
    device = plan.device if is_here or is_available(plan.device) else "cpu"
    with open_store(plan.out) as store:
        untrainable = find_damaged(plan.runs, store)
        reject_impossible(
            [spec for spec in plan.runs if spec not in untrainable],
            store,
            device,
            Measuring.from_plan(plan).names,
            is_here,
        )
        keep_plan(plan, store)
        store.reopen()
        if is_remote(plan.out):
            return []
        waiting = [spec for spec in plan.runs if spec not in untrainable and not store.is_finished(spec)]
        for spec in waiting if len(waiting) <= MOST_FOLDERS else ():
            store.add(spec, plan.memberships.get(spec, ()))
    return [run_name(spec) for spec in waiting]


def find_damaged(specs: Sequence[RunSpec], store: Store) -> dict[RunSpec, str]:
    """The runs that are left to `grokscope doctor`, with what is wrong: damaged ones, and unfinished forks of those.

    >>> from tempfile import TemporaryDirectory
    >>> spec = RunSpec()
    >>> with TemporaryDirectory() as folder:
    ...     store = Store(folder)
    ...     _ = store.add(spec)
    ...     _ = (store.path / run_name(spec) / "spec.json").write_text("torn")
    ...     [*find_damaged([spec], store)] == [spec]
    True
    """
    found = {spec: why for spec in specs if (why := store.damage_of(spec)) is not None}
    parents = {spec.fork.parent for spec in specs if spec.fork is not None}
    damaged = {name.rpartition("-")[2] for name in store.damaged_names(parents)} if parents else set()
    damaged |= {spec.content_hash for spec in found}
    forks = [spec for spec in specs if spec.fork is not None and spec not in found]
    while orphans := [spec for spec in forks if spec.fork and spec.fork.parent in damaged]:
        forks = [spec for spec in forks if spec not in orphans]
        for spec in orphans:
            if not store.is_finished(spec) and spec.fork:
                found[spec] = f"the run {spec.fork.parent} that it continues is damaged"
                damaged.add(spec.content_hash)
    return found


def reject_impossible(
    specs: Sequence[RunSpec], store: Store, device: str, measures: Sequence[str] = (), is_here: bool = True
) -> None:
    """Reject runs that cannot be trained, or measured while they are; nothing has been written by then.

    The memory of a machine elsewhere is not known.

    >>> from tempfile import TemporaryDirectory
    >>> with TemporaryDirectory() as folder:
    ...     reject_impossible([RunSpec("add_mod97")], Store(folder), "cpu", ["fsd"])  # nothing speaks against it
    """
    if not is_available(device):
        raise InputError(f"device {shown(device)} is not available; use cpu")
    if device == "mps" and any(spec.training.dropout or spec.precision == "float64" for spec in specs):
        raise InputError("mps has no float64, which dropout's random numbers and precision float64 need; use cpu")
    if monitored := next((spec for spec in specs if spec.model), None):
        name = run_name(monitored) if monitored.fork is None else f"the run {monitored.fork.parent}"
        raise InputError(f"{name} was only monitored: {shown(monitored.model)} is trained elsewhere")
    for task, fraction in {(spec.task, spec.train_fraction) for spec in specs}:
        train_size(named_task(task), fraction)
    kinds: dict[tuple[str, CohortKey], list[RunSpec]] = {}
    for spec in specs:
        reject_unsuited(spec, named_task(spec.task))
        key = cohort_key(spec)
        kinds.setdefault((spec.task, key), []).append(spec)
        layout_of(key.architecture, key.sizes)  # rejects a model that cannot read the rows in another way
        if spec.fork is None:
            reject_impossible_hold(spec)
    if is_here:
        _reject_too_large(kinds.values(), store, device)
    nearest = next(place for place in (store.path, *store.path.parents, Path()) if place.exists())
    if not nearest.is_dir():
        raise InputError(f"the folder {named(store.path)} could not be created: {named(nearest)} is a file")
    if any(spec.fork for spec in specs):
        _reject_impossible_forks(specs, store)
    _reject_unmeasurable(specs, measures, device)


def _reject_too_large(kinds: Iterable[Sequence[RunSpec]], store: Store, device: str) -> None:
    """Reject a run that alone takes more memory than there is, before it is taken; those of one kind take the same."""
    memory = total_memory(device)
    for members in kinds:
        needed = bytes_of_one(members[0], device)
        if needed > memory and not all(map(store.is_finished, members)):
            sizes = f"about {needed / 2**30:,.0f} GiB of memory, and {device} has {memory / 2**30:,.0f} GiB"
            raise InputError(
                f"one run of {named_task(members[0].task).name} takes {sizes}; use a smaller model or batch"
            )


def _reject_unmeasurable(specs: Sequence[RunSpec], measures: Sequence[str], device: str) -> None:
    """Reject unknown measures, and bases that no run has."""
    for reading in measures:
        measure_named(reading.partition("@")[0])
    if measures and device.startswith("mps"):
        raise InputError("mps has no float64, which measures need; use cpu, or measure the stored runs there")
    bases = dict.fromkeys(basis for task in {spec.task for spec in specs} for basis in named_task(task).bases)
    for reading in measures:
        where = reading.partition("@")[2]
        if where not in ("", "sum", *bases):
            raise InputError(f"no run can be read as {shown(reading)}{did_you_mean(where, ('sum', *bases))}")


def _reject_impossible_forks(specs: Sequence[RunSpec], store: Store) -> None:
    stored = store.find_hashes({spec.fork.parent for spec in specs if spec.fork is not None})
    known = {name: folder.spec for name, folder in stored.items()} | {spec.content_hash: spec for spec in specs}
    for spec in specs:
        if spec.fork is not None:
            parent, name = known.get(spec.fork.parent), spec.fork.parent
            if parent is None:
                raise InputError(f"there is no run {shown(name)} in {named(store.path)} to fork from")
            first = parent.fork.step if parent.fork else 0
            failed_at = stored[name].outcome.failed_at if name in stored else None
            last = parent.training.steps if failed_at is None else failed_at
            if not first <= spec.fork.step <= last:
                raise InputError(f"{run_name(parent)} has states from step {first} to {last}, got {spec.fork.step}")
            if len({_model(one) for one in (spec, parent)}) > 1:
                raise InputError(f"a fork must have the architecture and symbols of its parent {run_name(parent)}")
            reject_impossible_hold(spec, parent)
            if has_paired_run(spec):
                _reject_impossible_pair(spec, parent)


def _model(spec: RunSpec) -> tuple[Architecture, Sizes]:
    """What a fork shares with its parent: all of the model but its temperature, which has no weights."""
    return replace(spec.architecture, temperature=1.0), sizes_of(named_task(spec.task))


def _reject_impossible_pair(spec: RunSpec, parent: RunSpec) -> None:
    """A matched fork's parent is trained beside it, in one stack and by its spec alone."""
    if parent.rule is not None or (parent.fork is not None and parent.fork.norm != "free"):
        raise InputError(
            "a fork with matched norm needs a parent without trigger, closed loop, release or fixed norm, and "
            f"{run_name(parent)} has one of them"
        )
    if replace(cohort_key(paired_run(spec, parent)), holds_norm=True) != cohort_key(spec):
        raise InputError(
            f"a matched fork is trained beside its parent {run_name(parent)}: they must agree on the batch size, and "
            "on the kind of gradient, dropout and clipping"
        )
