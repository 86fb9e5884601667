"""Ways in which a folder of runs can be damaged, and what each command makes of them."""

import base64
import hashlib
import io
import json
import os
import pickle
import re
import shutil
import signal
import warnings
import zlib
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, redirect_stderr, redirect_stdout, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from small_commands import EXECUTORS, contents, trained_here

import grokscope
from grokscope.cli import run
from grokscope.errors import InputError
from grokscope.jobs import Stopped, run_all
from grokscope.runs import Measuring, Store, keep_plan, run_name
from grokscope.runs.logs import encode_row
from grokscope.specs import Architecture, Cadence, Membership, Plan, RunSpec, Training

__all__ = ["CASES", "ENDED", "OTHER", "OTHERS", "QUICK", "STATES", "WAITING", "Bench", "Case", "Seen", "workplace"]

SECONDS = 5  # that a command may take, whatever lies in the folder; one that trains may take more
SPEC = RunSpec(
    task="add_mod5",
    train_fraction=0.6,
    architecture=Architecture(layers=1, width=8, heads=2, mlp_width=8),
    training=Training(steps=8, batch_size=8),
    checkpoints=Cadence(every=4, at=(2,)),
    measurements=Cadence(every=2),
)
RUNS = ENDED, OTHER, WAITING = tuple(SPEC.with_seed(seed) for seed in range(3))
STUDIES = {spec: (Membership("study", "base", f"s{i}"),) for i, spec in enumerate(RUNS)}
MEASURING = Measuring(("fsd",))
OUTSIDE = "outside"  # beside the folder of runs


def prepare(path: Path) -> Path:
    """A folder of runs with two that have ended and one that was stopped at step 4, and their plan."""
    store, calls = Store(path / "runs"), iter(range(100))
    run_all([ENDED, OTHER], store, compiled=False, measuring=MEASURING, made_for=STUDIES)
    with suppress(Stopped):
        stop = {"should_stop": lambda: next(calls) == 2}
        run_all([WAITING], store, compiled=False, measuring=MEASURING, made_for=STUDIES, **stop)
    keep_plan(Plan("runs", RUNS, measures=("fsd",), made_for=tuple(STUDIES[spec] for spec in RUNS)), store)
    (path / OUTSIDE).mkdir()
    for log in store.path.glob("*/log.jsonl"):  # long ago, so that no command finds that a run trains
        os.utime(log, (0, 0))
    return store.path


@dataclass(frozen=True)
class Case:
    """One damage of one folder."""

    who: RunSpec
    """The run that is damaged, or that is looked at where a file beside the runs is."""
    file: str
    """The file, as the table names it."""
    kind: str
    """What happened to it."""
    damage: Callable[[Path], object]
    """Does it to a folder of runs."""
    harmless: str = ""
    """Why no command need name it; one has to if this is empty."""
    rest: str = ""
    """Why it is not the same bytes again after `doctor --repair` and `resume`; it has to be if this is empty."""

    @property
    def name(self) -> str:
        """What tells it from all others."""
        return f"{STATES[self.who]}: {self.file}: {self.kind}"


STATES = {ENDED: "ended", WAITING: "stopped"}


# What may lie in the place of any file.


def half(path: Path) -> None:
    path.write_bytes(path.read_bytes()[: path.stat().st_size // 2])


def flip(path: Path) -> None:
    content = bytearray(path.read_bytes())
    content[len(content) // 2] ^= 1 << 3
    path.write_bytes(content)


def lead_out(path: Path) -> None:
    outside = path.parents[1] / ".." / OUTSIDE / path.name
    shutil.move(path, outside)
    path.symlink_to(outside.resolve())


def put_in_place(make: Callable[[Path], object]) -> Callable[[Path], None]:
    def replaced(path: Path) -> None:
        path.unlink()
        make(path)

    return replaced


KINDS: dict[str, Callable[[Path], object]] = {
    "gone": Path.unlink,
    "empty": lambda path: path.write_bytes(b""),
    "cut in half": half,
    "a flipped bit": flip,
    "bytes of something else": lambda path: path.write_bytes(b"\xff\0\x1b[31m\n" * 20),
    "a folder": put_in_place(Path.mkdir),
    "a pipe": put_in_place(os.mkfifo),
    "a dangling link": put_in_place(lambda path: path.symlink_to("nowhere")),
    "a link to itself": put_in_place(lambda path: path.symlink_to(path.name)),
    "a link out of the folder": lead_out,
    "a hundred gigabytes": lambda path: os.truncate(path, 10**11),
    "a hundred thousand brackets": lambda path: path.write_bytes(b"[" * 100_000),
    "a number of five thousand digits": lambda path: path.write_bytes(b'{"step": ' + b"9" * 5000 + b"}"),
    "a pickle": lambda path: path.write_bytes(pickle.dumps({"a": 1})),
}


def in_run(who: RunSpec, file: str, change: Callable[[Path], object]) -> Callable[[Path], object]:
    return lambda store: change(store / run_name(who) / file)


def from_other(who: RunSpec, *files: str) -> Callable[[Path], None]:
    """Files of the other run in the place of one's own; all but the spec if none is named."""

    def copy(store: Path) -> None:
        mine, other = store / run_name(who), store / run_name(OTHER)
        names = files or [path.name for path in other.iterdir() if path.name not in ("spec.json", "made_for.jsonl")]
        for path in [] if files else [*mine.iterdir()]:
            if path.name not in ("spec.json", "made_for.jsonl"):
                path.unlink()
        for name in names:
            shutil.copy(other / name, mine / name)

    return copy


def plan_of(store: Path) -> Path:
    (path,) = (store / "plans").iterdir()
    return path


# Damages of one file alone, with all checksums of its own made right again.


def edited(path: Path, change: Callable[[dict[str, Any]], object]) -> None:
    found = json.loads(path.read_bytes())
    change(found)
    path.write_text(json.dumps(found, indent=1))


def resealed(change: Callable[[dict[str, Any]], object]) -> Callable[[Path], None]:
    """An outcome that is changed and given the digest of what it says now."""

    def edit(path: Path) -> None:
        def both(found: dict[str, Any]) -> None:
            del found["sha256"]
            change(found)
            found["sha256"] = hashlib.sha256(json.dumps(found, sort_keys=True).encode()).hexdigest()

        edited(path, both)

    return edit


def lines_of(path: Path, change: Callable[[list[bytes]], Sequence[bytes]]) -> None:
    path.write_bytes(b"".join(change(path.read_bytes().splitlines(keepends=True))))


def rewritten(row: dict[str, object]) -> Callable[[list[bytes]], list[bytes]]:
    """The second line with other values and its own right checksum."""

    def change(lines: list[bytes]) -> list[bytes]:
        values = json.loads(lines[1].partition(b"\t")[0]) | row
        return [lines[0], encode_row(values, ENDED.content_hash), *lines[2:]]

    return change


def swap_logs(store: Path) -> None:
    one, other = (store / run_name(spec) / "log.jsonl" for spec in (ENDED, OTHER))
    mine = one.read_bytes()
    one.write_bytes(other.read_bytes())
    other.write_bytes(mine)


def forget_checkpoint(store: Path) -> None:
    folder = store / run_name(ENDED)
    (folder / "weights-00000004.safetensors").unlink()
    edited(folder / "manifest.json", lambda found: found.pop("weights-00000004.safetensors"))


def vouch_for_another(store: Path) -> None:
    folder, name = store / run_name(ENDED), "weights-00000004.safetensors"
    shutil.copy(folder / "weights-00000008.safetensors", folder / name)
    edited(folder / "manifest.json", lambda found: found.update({name: found["weights-00000008.safetensors"]}))


def move(to: str) -> Callable[[Path], object]:
    return lambda store: (store / run_name(ENDED)).rename(store / to)


def replaced_by(make: Callable[[Path], object]) -> Callable[[Path], None]:
    def change(store: Path) -> None:
        shutil.rmtree(store / run_name(ENDED))
        make(store / run_name(ENDED))

    return change


def lead_run_out(store: Path) -> None:
    outside = (store.parent / OUTSIDE / run_name(ENDED)).resolve()
    shutil.move(store / run_name(ENDED), outside)
    (store / run_name(ENDED)).symlink_to(outside)


HARMLESS = {
    ("ended", "format", "gone"): "a run without it is of the first format, and whatever names its run is still checked",
    ("ended", "outcome.json", "gone"): "it is a run that has not ended: `resume` ends it with the same bytes",
    ("stopped", "log.jsonl", "gone"): "`resume` computes again what a log lacks",
    ("stopped", "log.jsonl", "empty"): "`resume` computes again what a log lacks",
    ("stopped", "measures.jsonl", "gone"): "`resume` computes again what a log lacks",
    ("stopped", "measures.jsonl", "empty"): "`resume` computes again what a log lacks",
    ("stopped", "state-00000004.safetensors", "gone"): "`resume` continues from an earlier state",
    ("stopped", "passing.json", "gone"): "`resume` writes it again",
}


NO_FORMAT = "the format is not written again"
FORGOTTEN = "what the plan measured is not measured of the runs that had not ended"
PLAN = "plans/….json"


def generic_cases() -> Iterator[Case]:
    """Each file of a run that has ended, and of one that has not, damaged in each way."""
    of_ended = ("format", "spec.json", "made_for.jsonl", "log.jsonl", "measures.jsonl", "manifest.json", "outcome.json")
    files = {
        ENDED: (*of_ended, "weights-00000004.safetensors", "state-00000008.safetensors"),
        WAITING: ("log.jsonl", "measures.jsonl", "manifest.json", "state-00000004.safetensors", "passing.json"),
    }
    for who, names in files.items():
        for name in names:
            for kind, change in KINDS.items():
                why = HARMLESS.get((STATES[who], name, kind), "")
                rest = NO_FORMAT if (who, name, kind) == (ENDED, "format", "gone") else ""
                rest = "the states that it named stay after the end" if name == "passing.json" else rest
                yield Case(who, name, kind, in_run(who, name, change), why, rest)
    for kind, change in KINDS.items():
        why = "the runs that have a folder go on without it; what only it named is not known" if kind == "gone" else ""
        yield Case(ENDED, PLAN, kind, lambda store, change=change: change(plan_of(store)), why, FORGOTTEN)


def special_cases() -> Iterator[Case]:
    """Damages that leave each file well-formed, and those of what is no file of a run."""
    mine = run_name(ENDED)
    spec, log, end, manifest = (f"{name}" for name in ("spec.json", "log.jsonl", "outcome.json", "manifest.json"))
    edits: dict[tuple[str, str], Callable[[Path], object]] = {
        (spec, "another λ"): lambda path: edited(path, lambda found: found["training"].update(weight_decay=3.0)),
        (spec, "a task with an escape sequence"): lambda path: edited(path, lambda found: found.update(task="\x1b[2J")),
        (spec, "a key that stands twice"): lambda path: path.write_text('{"task": "add_mod5", "task": "S3"}'),
        (spec, "a number that is none"): lambda path: path.write_text('{"train_fraction": NaN}'),
        (end, "without its digest"): lambda path: edited(path, lambda found: found.pop("sha256")),
        (end, "without run and files"): resealed(lambda found: (found.pop("run"), found.pop("files"))),
        (end, "another ending, with its digest"): resealed(lambda found: found.update(outcome="grokked", grokked=4)),
        (end, "an unknown ending, with its digest"): resealed(lambda found: found.update(outcome="exploded")),
        (end, "a key that stands twice"): lambda path: path.write_text('{"outcome": "never", "outcome": "grokked"}'),
        (log, "without its last record"): lambda path: lines_of(path, lambda lines: lines[:-1]),
        (log, "a torn last record"): lambda path: lines_of(path, lambda lines: [*lines[:-1], lines[-1][:-20]]),
        (log, "its records twice"): lambda path: lines_of(path, lambda lines: lines * 2),
        (log, "another value, with its checksum"): lambda path: lines_of(path, rewritten({"fsd": 0.9})),
        (log, "an infinite number, with its checksum"): lambda path: lines_of(path, rewritten({"fsd": 10**400})),
        (log, "a column named by an escape sequence"): lambda path: lines_of(path, rewritten({"\x1b[2J": 1.0})),
        ("measures.jsonl", "without its last record"): lambda path: lines_of(path, lambda lines: lines[:-1]),
        ("made_for.jsonl", "a torn last record"): lambda path: path.write_bytes(path.read_bytes()[:-20]),
        (manifest, "without its run"): lambda path: edited(path, lambda found: found.pop("run")),
        (manifest, "an entry that is none"): lambda path: edited(
            path, lambda found: found.update({"weights-00000004.safetensors": 3})
        ),
    }
    for (file, kind), change in edits.items():
        yield Case(ENDED, file, kind, in_run(ENDED, file, change))
    for file in (spec, log, "measures.jsonl", "made_for.jsonl", manifest, end, "weights-00000004.safetensors"):
        yield Case(ENDED, file, "another run's", from_other(ENDED, file))
    for file in (log, manifest, end, "state-00000002.safetensors"):
        yield Case(WAITING, file, "another run's", from_other(WAITING, file))
    yield Case(ENDED, "all but the spec", "another run's", from_other(ENDED))
    yield Case(WAITING, "all but the spec", "another run's", from_other(WAITING))
    yield Case(ENDED, log, "swapped with another run's", swap_logs)
    yield Case(ENDED, "weights-00000004.safetensors", "gone with its entry in the manifest", forget_checkpoint)
    yield Case(ENDED, "weights-00000004.safetensors", "another step's, with its entry", vouch_for_another)
    for who in (ENDED, WAITING):
        for kind in ("a folder", "a pipe", "a dangling link"):
            make = {"a folder": Path.mkdir, "a pipe": os.mkfifo, "a dangling link": lambda path: path.symlink_to("x")}
            yield Case(who, "lock", kind, in_run(who, "lock", make[kind]))
        yield Case(
            who,
            "lock",
            "bytes of something else",
            in_run(who, "lock", lambda path: path.write_bytes(b"\xff\x1b[31m")),
            "a lock is held by a process, not by what is written in it",
        )
    yield Case(ENDED, "the run's folder", "a file", replaced_by(lambda path: path.write_bytes(b"")))
    yield Case(ENDED, "the run's folder", "a pipe", replaced_by(os.mkfifo))
    yield Case(ENDED, "the run's folder", "a dangling link", replaced_by(lambda path: path.symlink_to("nowhere")))
    yield Case(
        ENDED,
        "the run's folder",
        "a link to itself elsewhere",
        lead_run_out,
        "its files are those of the run, and nothing is written through the link",
        "the link stays",
    )
    nothing = "nothing of the run is left, so `resume` trains it anew as its plan says"
    yield Case(ENDED, "the run's folder", "empty", replaced_by(Path.mkdir), nothing)
    yield Case(ENDED, "the run's folder", "gone", replaced_by(lambda path: None), nothing)
    stays = "it keeps its name"
    renamed = "the end of the name says which run it is; a plan that names it trains it once more"
    yield Case(ENDED, "the run's folder", "named with another word", move(f"mine-{mine[-16:]}"), renamed, stays)
    yield Case(ENDED, "the run's folder", "named with another hash", move(f"{mine[:-16]}{'0' * 16}"), "", stays)
    yield Case(ENDED, "the run's folder", "named without its hash", move("mine"), "", stays)
    yield Case(
        ENDED,
        PLAN,
        "another plan's content",
        lambda store: edited(plan_of(store), lambda found: found.update(runs=found["runs"][:1], made_for=[])),
        "",
        FORGOTTEN,
    )
    for kind in ("a folder", "a pipe", "a dangling link"):
        make = {"a folder": Path.mkdir, "a pipe": os.mkfifo, "a dangling link": lambda path: path.symlink_to("nowhere")}
        for name in ("cancelled", ".index.sqlite"):
            yield Case(ENDED, name, kind, lambda store, name=name, make=make[kind]: make(store / name))


CASES = {case.name: case for case in (*generic_cases(), *special_cases())}


# What commands make of it.


@dataclass(frozen=True)
class Seen:
    """What a command answered."""

    status: int
    out: str
    error: str

    @property
    def text(self) -> str:
        """All that was printed, without what depends on the time."""
        return re.sub(r"quiet +\S+ d \S+ h", "quiet", f"{self.out}{self.error}")


@contextmanager
def within(seconds: float, what: str) -> Iterator[None]:
    """Interrupts what hangs, even while it waits for a pipe."""

    def ring(number: int, frame: object) -> None:
        raise AssertionError(f"{what} was still at it after {seconds} s")

    before = signal.signal(signal.SIGALRM, ring)
    signal.setitimer(signal.ITIMER_REAL, seconds)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)


def call(words: Sequence[str], seconds: float = SECONDS) -> Seen:
    """A command, run here; whatever it raises, other than to exit, escapes."""
    out, error = io.StringIO(), io.StringIO()
    with within(seconds, " ".join(words)), redirect_stdout(out), redirect_stderr(error):
        try:
            status = run(words)
        except SystemExit as stop:
            status = int(stop.code or 0)
    return Seen(status, out.getvalue(), error.getvalue())


def through_python(store: Path, who: str) -> Seen:
    """`grokscope.open`: the table, and the runs one by one."""
    with within(SECONDS, "grokscope.open"), warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        runs = grokscope.open(store)
        rows = [(row["run"], row["outcome"], row["problem"]) for row in runs.table()]
        lengths = {}
        for one in runs:
            try:
                lengths[one.name] = len(one.log().get("step", ()))
            except InputError as error:
                lengths[one.name] = f"is damaged: {error}"
    return Seen(0, f"{rows} {lengths}", " ".join(str(one.message) for one in caught))


def served(store: Path, who: str) -> Seen:
    """What `grokscope serve` sends to a reader who has just come."""
    from grokscope.view.page.live import Watch

    with within(SECONDS, "serve"):
        (_, event), *_ = Watch(store).news()  # the runs, then how far they are
    return Seen(0, zlib.decompress(base64.b64decode(json.loads(event)["facts"])).decode(), "")


Command = Callable[[Path, str], Seen]


def command(line: str) -> Command:
    """A command line with RUN and DIR in their places; files it writes are removed before."""

    def called(store: Path, who: str) -> Seen:
        written = store.parent / "written"
        shutil.rmtree(written, ignore_errors=True)
        written.mkdir()
        words = [{"DIR": str(store), "RUN": who}.get(word, word) for word in line.split()]
        return call([word.replace("OUT", str(written)) for word in words])

    return called


QUICK: dict[str, Command] = {
    "list": command("list DIR"),
    "show": command("show DIR"),
    "show RUN": command("show DIR RUN"),
    "status": command("status DIR"),
    "watch": command("watch DIR --once"),
    "Python": through_python,
    "doctor": command("doctor DIR"),
}
OTHERS: dict[str, Command] = {
    "report": command("report DIR --out OUT/page.html"),
    "serve": served,
    "query": lambda store, who: call(["query", str(store), "select run, step, fsd from log order by all"]),
    "export": command("export DIR RUN --out OUT/weights.safetensors"),
    "measure": command("measure DIR RUN --at 4 --measures norms --out OUT/norms.csv"),
}


@contextmanager
def workplace() -> Iterator[None]:
    """Commands run in this process, in a window of one size, on a disk that need not be waited for."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(os, "fsync", lambda descriptor: None)
        patch.setattr(f"{EXECUTORS}.run_locally", trained_here)
        patch.setenv("COLUMNS", "250")
        yield


class Bench:
    """A whole folder of runs, of which each damage gets a copy in the same place."""

    def __init__(self, path: Path) -> None:
        self.path = path
        prepare(path / "whole")
        self.whole = {
            (who, name): ask(self.copy(), who.content_hash) for who in STATES for name, ask in (QUICK | OTHERS).items()
        }
        store = self.copy()
        assert call(["resume", str(store), "--device", "cpu"], seconds=60).status == 0
        self.ended = files_of(store)

    def copy(self) -> Path:
        """A whole folder of runs."""
        shutil.rmtree(self.path / "copy", ignore_errors=True)
        shutil.copytree(self.path / "whole", self.path / "copy")
        return self.path / "copy" / "runs"

    def ask(self, case: Case, commands: dict[str, Command]) -> tuple[dict[str, str], dict[str, Seen]]:
        """What each command makes of a damage, in a word, and what it said."""
        store = self.copy()
        case.damage(store)
        seen = {name: ask(store, case.who.content_hash) for name, ask in commands.items()}
        return {name: judge(name, one, self.whole[case.who, name]) for name, one in seen.items()}, seen

    def mend(self, case: Case) -> dict[str, str]:
        """Whether `doctor --repair` repairs it, and what is there when `resume` has gone on."""
        store = self.copy()
        case.damage(store)
        is_found = call(["doctor", str(store)]).status == 1
        is_mended = call(["doctor", str(store), "--repair"]).status == 0
        call(["resume", str(store), "--device", "cpu"], seconds=60)
        found = files_of(store)
        changed = {
            name.partition("/")[0]
            for name in found.keys() | self.ended.keys()
            if found.get(name) != self.ended.get(name)
        }
        affected = {run_name(WAITING if case.file == PLAN else case.who)}
        others = {one for one in changed & set(map(run_name, RUNS)) if one not in affected}
        after = "same bytes" if not changed else "the others the same" if not others else f"not the same: {others}"
        return {"repair": ("repaired" if is_mended else "kept") if is_found else "–", "then": after}


def files_of(store: Path) -> dict[str, object]:
    """The files of the runs, but for what was set aside."""
    return {name: found for name, found in contents(store).items() if "/.damaged" not in f"/{name}"}


def judge(name: str, seen: Seen, whole: Seen) -> str:
    """What a command made of a damaged folder, in a word, given what it makes of the whole one."""
    if name == "doctor":
        return "found" if seen.status == 1 else "–"
    if seen.status == 2:
        return "rejected"
    if seen.text == whole.text:
        return "–"
    return "shown" if re.search(r"damaged|left out", seen.text) else "differs"


def row_of(bench: Bench, case: Case) -> dict[str, str]:
    """A damage's row in the table of docs/damage.md."""
    words, _ = bench.ask(case, QUICK | OTHERS)
    about = {"run": STATES[case.who], "file": case.file, "damage": case.kind}
    notes = "; ".join(filter(None, [case.harmless, case.rest]))
    return about | words | bench.mend(case) | {"why": notes}
