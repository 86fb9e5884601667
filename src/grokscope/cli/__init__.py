"""The command line: parses, prints, and turns bad input into one sentence and exit status 2."""

import io
import sys
from collections.abc import Callable, Mapping, Sequence
from functools import partial, wraps

import tyro

from grokscope.cli.commands import Command, Commands
from grokscope.errors import InputError, did_you_mean, shown
from grokscope.version import __version__

__all__ = ["COMMANDS", "run"]

BAD_INPUT = 2
COMMANDS = Commands(
    {
        "train": "train:train",
        "resume": "train:resume",
        "fork": "train:fork",
        "sweep": "sweep:sweep",
        "status": "stores:status",
        "cancel": "stores:cancel",
        "doctor": "doctor:doctor",
        "pull": "stores:pull_runs",
        "watch": "watch:watch",
        "list": "listing:list_runs",
        "show": "runs:show",
        "story": "runs:tell",
        "query": "query:query",
        "export": "runs:export",
        "convert": "convert:convert",
        "report": "report:report",
        "serve": "report:serve",
        "measures": "measures:measures",
        "measure": "measures:measure_run",
        "reproduce": "reproduce:reproduce",
        "claims": "reproduce:claims",
        "remake": "reproduce:remake",
        "tasks": "tasks:tasks",
        "groups": "groups:groups",
        "figure": "figures:figure",
        "bakeoff": "bakeoff:bakeoff",
    }
)
CONFIG = (tyro.conf.HelptextFromCommentsOff,)
DESCRIPTION = """See grokking coming, prove why it happens, and steer it.

Start here:
  grokscope tasks              what can be learnt, and how it is named
  grokscope tasks add_mod97    one task: its pairs, answers and bases
  grokscope train add_mod97 --seeds 0:2 --out runs/first
  grokscope watch runs/first   how they are getting on, from another terminal
  grokscope list runs/first    what became of them
  grokscope story runs/first   the same in plain words
  grokscope fork add_mod97_s0 --at 1000 --weight-decay 2 3 --out runs/first
  grokscope report runs/first   the same as a page to look at and send
  grokscope measures fsd       a measure: formula, source, null, example
  grokscope reproduce --quick --dry-run    the paper, run again and judged
  grokscope groups S5          a group: classes, characters, modes, checks
  grokscope --version          the version"""


def run(arguments: Sequence[str]) -> int:
    """Run one command and return its exit status: 0 if it did its job, 2 if its input cannot be used."""
    if isinstance(sys.stdout, io.TextIOWrapper):
        sys.stdout.reconfigure(errors="replace")  # a terminal without our letters shows ? in their place
    if list(arguments) == ["--version"]:
        print(f"grokscope {__version__}")
        return 0
    try:
        _parsed(list(arguments) or ["--help"])()
    except InputError as error:
        print(f"grokscope: {error}", file=sys.stderr)
        return BAD_INPUT
    except BrokenPipeError:  # the reader of a pipe (head, less) has had enough
        sys.stderr.close()
        return 0
    return 0


def _parsed(words: list[str]) -> Callable[[], None]:
    """What is asked for, ready to be called. No other command is imported, unless an option has to be looked for."""
    name, rest = words[0], words[1:]
    if name not in COMMANDS:
        if not name.startswith("-"):
            hint = did_you_mean(name, COMMANDS) or "; `grokscope --help` shows them all"
            raise InputError(f"there is no command {shown(name)}{hint}")
        return _parsed_by(COMMANDS.described() if name in ("-h", "--help") else COMMANDS, words)
    command = COMMANDS[name]
    if rest and rest[0].replace("_", "-").startswith("--tyro-"):  # completion in a shell is for all commands at once
        return _parsed_by(COMMANDS, words)
    try:
        return tyro.cli(_postponed(command), args=rest, console_outputs=False, config=CONFIG)
    except SystemExit as stop:  # its help is to be shown, or what is wrong
        return _parsed_by(COMMANDS if stop.code else {name: command}, words)


def _parsed_by(commands: Mapping[str, Command], words: list[str]) -> Callable[[], None]:
    postponed = {name: _postponed(command) for name, command in commands.items()}
    return tyro.extras.subcommand_cli_from_dict(
        postponed, prog="grokscope", description=DESCRIPTION, args=words, config=CONFIG
    )


def _postponed(command: Command) -> Callable[..., Callable[[], None]]:
    """The command as tyro sees it: it only takes the arguments, and is called once tyro has done."""

    @wraps(command)
    def taken(*arguments: object, **options: object) -> Callable[[], None]:
        return partial(command, *arguments, **options)

    return taken
