"""The command line: parses, prints, and turns bad input into one sentence and exit status 2."""

import contextlib
import inspect
import io
import re
import sys
from collections.abc import Callable, Sequence
from functools import partial, wraps
from itertools import takewhile, zip_longest
from pathlib import Path

import tyro

from grokscope.cli.commands import GROUPS, RENAMED, Command, Commands, arguments_of, examples_of
from grokscope.cli.lists import separate
from grokscope.cli.values import check_values
from grokscope.errors import InputError, did_you_mean, for_shell, nearest, shown
from grokscope.files import DamagedError
from grokscope.version import __version__

__all__ = ["COMMANDS", "help_text", "parse", "run"]

BAD_INPUT = 2
CTRL_C = 130  # as shells report a process that SIGINT has ended
COMMANDS = Commands({name: place for group in GROUPS.values() for name, place in group.items()})
CONFIG = (tyro.conf.HelptextFromCommentsOff, tyro.conf.OmitArgPrefixes)
SYNONYMS = {  # options as other programs call them
    "bs": "batch-size",
    "d-mlp": "mlp-width",
    "d-model": "width",
    "epochs": "steps",
    "eta": "learning-rate",
    "frac-train": "train-fraction",
    "lambda": "weight-decay",
    "lr": "learning-rate",
    "n-heads": "heads",
    "n-layers": "layers",
    "output": "out",
    "seed": "seeds",
    "to": "out",
    "wd": "weight-decay",
}
SHELLS = ("bash", "zsh", "fish")
TITLE = "Train, fork and measure grokking, and compare what you measure with its null."
START = """
Options
  --help               this text; `grokscope COMMAND --help` explains one command
  --version            the version
  --completion SHELL   print a completion script for bash, zsh or fish

Examples
  grokscope tasks add_mod97
  grokscope train add_mod97 --seeds 0:2 --out runs/first
  grokscope watch runs/first
  grokscope show runs/first
  grokscope fork runs/first add_mod97_s0 --at 1000 --weight-decay 2 3
  grokscope report runs/first --out report.html
  grokscope measure --measures fsd
  grokscope reproduce synchronization --quick --dry-run"""


def run(arguments: Sequence[str]) -> int:
    """Run one command and return its exit status: 0 if it did its job, 2 if its input cannot be used."""
    if isinstance(sys.stdout, io.TextIOWrapper):
        sys.stdout.reconfigure(errors="replace")  # a terminal without our letters shows ? in their place
    try:
        parse(list(arguments) or ["--help"])()
    except InputError as error:
        hint = f"; `grokscope doctor {_folder_in(arguments)}` says what can be repaired"
        hint = hint if isinstance(error, DamagedError) else ""
        print(f"grokscope: {error}{hint}", file=sys.stderr)
        return BAD_INPUT
    except KeyboardInterrupt:
        print("grokscope: ended by Ctrl-C; whatever was stored stays as it is", file=sys.stderr)
        return CTRL_C
    except ModuleNotFoundError as error:
        if (error.name or "grokscope").partition(".")[0] == "grokscope":  # ours: a defect
            raise
        needs = f"the command line needs {error.name}; install it with: pip install grokscope"
        print(f"grokscope: {needs}", file=sys.stderr)
        return BAD_INPUT
    except BrokenPipeError:  # the reader of a pipe (head, less) has ended
        sys.stderr.close()
    return 0


def _folder_in(words: Sequence[str]) -> str:
    """The folder of runs that a command line names first, as it is written there."""
    return next((for_shell(word) for word in words[1:] if "://" in word or Path(word).is_dir()), "DIR")


def help_text() -> str:
    """All commands in their groups, a line each; no command is imported."""
    lines = {title: [f"  {name:<10} {COMMANDS.summary(name)}\n" for name in group] for title, group in GROUPS.items()}
    groups = [f"{title}\n{''.join(group)}" for title, group in lines.items()]
    return f"usage: grokscope COMMAND ...\n\n{TITLE}\n\n" + "\n".join(groups) + START


def parse(words: list[str]) -> Callable[[], object]:
    """The command, ready to be called with its arguments. No other command is imported unless an option is unknown."""
    name, rest = words[0], words[1:]
    if name in COMMANDS:
        command = COMMANDS[name]
        if rest[:1] == [""]:
            raise InputError(f"the first word after `grokscope {name}` is empty; is a shell variable not set?")
        _check_options(name, command, rest)
        rest = separate(rest, arguments_of(command))
        check_values(rest, arguments_of(command))
        try:
            with contextlib.redirect_stderr(io.StringIO()):  # what tyro says in boxes is said here in a sentence
                return tyro.cli(_postponed(command), prog=f"grokscope {name}", args=rest, config=CONFIG)
        except SystemExit as stop:
            if stop.code:
                got = shown(" ".join(words[1:])) if words[1:] else "nothing"
                usage = " ".join([name, *_required(command)])
                needed = [one for one in _required(command) if one.startswith("--")]
                if missing := [one.removesuffix(" ...") for one in needed if one.split()[0] not in words]:
                    got += f"; {' and '.join(missing)} is missing"
                raise InputError(f"a command such as `grokscope {usage}` is expected, got {got}") from None
            print("\n".join(["", "Examples:", *(f"  {line}" for line in examples_of(inspect.getdoc(command) or ""))]))
            raise
    if name == "--completion":
        return partial(_print_completion, rest)
    if name in ("-h", "--help", "--version") and not rest:
        return partial(print, f"grokscope {__version__}" if name == "--version" else help_text())
    if name in ("-h", "--help", "--version"):
        raise InputError(f"nothing is expected after {name}, got {shown(' '.join(rest))}")
    if name in RENAMED:
        raise InputError(f"`grokscope {name}` is now `grokscope {RENAMED[name]}`")
    kind, known = ("option", ("--help", "--version", "--completion")) if name.startswith("-") else ("command", COMMANDS)
    raise InputError(
        f"there is no {kind} {shown(name)}{did_you_mean(name, known) or '; `grokscope --help` shows them'}"
    )


def _required(command: Command) -> list[str]:
    """The arguments of a command as its usage shows them: those that may be left out are in brackets, or not there."""
    parameters = inspect.signature(command).parameters
    usage = []
    for one in arguments_of(command):
        is_needed = one.owner is command and parameters[one.name].default is inspect.Parameter.empty
        if one.written.startswith("--"):
            usage += [f"{one.written} ..."] if is_needed else []
        else:
            place = one.written.strip("[]")
            usage.append(place if is_needed else f"[{place}]")
    return usage


def _check_options(name: str, command: Command, words: list[str]) -> None:
    """Reject an option that the command does not have, one that is given twice, and one without its value."""
    known = {one.written: one.takes_value for one in arguments_of(command)} | {"--help": False}
    words = list(takewhile(lambda word: word != "--", words))
    given: list[str] = []
    for word, following in zip_longest(words, words[1:], fillvalue="--"):
        option, equals, _ = word.replace("_", "-").partition("=") if word.startswith("--") else (word, "", "")
        if not option.startswith("--"):
            continue
        if option not in known:
            raise InputError(f"`grokscope {name}` has no option {shown(option)}{_elsewhere(option, known)}")
        if option in given:
            raise InputError(f"{option} was given twice; give several values after one {option}")
        if known[option] and not equals and following.startswith("--"):
            raise InputError(f"{option} needs a value; see `grokscope {name} --help`")
        given.append(option)


def _elsewhere(option: str, known: Sequence[str] | dict[str, bool]) -> str:
    """The option that may be meant: one of this command, or one of another."""
    asked = SYNONYMS.get(option[2:], option[2:])
    found = nearest(asked, [one[2:] for one in known if one.startswith("--")])
    if found:
        return f"; did you mean '--{found}'?"
    owners = {one.written: name for name in reversed([*COMMANDS]) for one in arguments_of(COMMANDS[name])}
    found = nearest(asked, [one[2:] for one in owners if one.startswith("--")])
    return f"; `grokscope {owners[f'--{found}']} --help` has '--{found}'" if found else ""


def _print_completion(words: list[str]) -> None:
    if len(words) != 1 or words[0] not in SHELLS:
        raise InputError(f"--completion takes one shell of {', '.join(SHELLS)}, got {shown(' '.join(words))}")
    postponed = {name: _postponed(command) for name, command in COMMANDS.items()}
    tyro.extras.subcommand_cli_from_dict(
        postponed, prog="grokscope", args=["--tyro-write-completion", words[0], "-"], config=CONFIG
    )


def _postponed(command: Command) -> Callable[..., Callable[[], object]]:
    """The command as tyro sees it: it only takes the arguments, and is called once tyro has ended.

    A meaning of several lines is joined into one, because tyro would keep its breaks; for that it must not see the
    command's own docstring.
    """

    @wraps(command)
    def taken(*arguments: object, **options: object) -> Callable[[], object]:
        return partial(command, *arguments, **options)

    del taken.__wrapped__
    taken.__doc__ = re.sub(r"\n {8,}", " ", inspect.getdoc(command) or "")
    taken.__signature__ = inspect.signature(command)  # type: ignore[attr-defined]
    return taken
