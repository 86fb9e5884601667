"""What is wrong with a remote place: each committed file, fetched and checked, and commits that are forgotten."""

from collections.abc import Iterator, Sequence
from contextlib import suppress

from grokscope.errors import InputError
from grokscope.files import DamagedError
from grokscope.runs.doctor import Finding, planned_runs
from grokscope.runs.remote import Commit, Remote, RemoteStore
from grokscope.runs.run_folder import run_name
from grokscope.specs import RunSpec

__all__ = ["examine_remote"]


def examine_remote(remote: Remote, repair: bool = False) -> Iterator[Finding]:
    """Every committed file of a remote place, fetched and checked; to repair is to forget the commits that are damaged.

    A marker says that a run has ended, whatever became of its files: only without it `grokscope resume` goes on. That
    has to find the run, so one that no whole commit and no plan names is committed anew, as its spec alone.
    """
    with RemoteStore(remote.address) as store:
        planned = planned_runs(store)
        for run in remote.runs():
            damaged, is_found = _damaged_commits(remote, run)
            spec = None
            if damaged and not is_found and run.rpartition("-")[2] not in planned:
                spec = _whole_spec(remote, run, [commit for commit, _ in damaged])
                if spec is None:
                    lost = "; nothing else here says what was run, so its commit is kept"
                    yield from (Finding(run, problem + lost, "") for _, problem in damaged)
                    continue
                if repair:
                    store.create(spec).commit(0, finished=False)
            for commit, problem in damaged:
                if repair:
                    remote.remove(f"{run}/{commit.marker}")
                rest = "its commit is forgotten" if spec is None else "of its commit the spec alone is kept"
                yield Finding(run, problem, f"{rest}, for `grokscope resume`", repair)


def _damaged_commits(remote: Remote, run: str) -> tuple[list[tuple[Commit, str]], bool]:
    """The commits that would be believed before the first whole one, with what is wrong; and whether there is one."""
    damaged = []
    for commit in remote.commits(run):
        try:
            remote.content(run, commit)
        except DamagedError as error:
            damaged.append((commit, str(error)))
        else:
            return damaged, True
    return damaged, False


def _whole_spec(remote: Remote, run: str, commits: Sequence[Commit]) -> RunSpec | None:
    """The run's spec, from whichever damaged commit still has it."""
    for commit in commits:
        with suppress(DamagedError, KeyError, UnicodeDecodeError, InputError):
            spec = RunSpec.from_json(remote.content(run, commit, only=("spec.json",))["spec.json"].decode())
            if run_name(spec) == run:
                return spec
    return None
