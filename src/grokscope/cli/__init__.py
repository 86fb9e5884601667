"""The command line: parses, prints, and turns bad input into one sentence and exit status 2."""

import io
import sys
from collections.abc import Callable, Sequence

import tyro

from grokscope.cli.groups import groups
from grokscope.cli.measures import measure_run, measures
from grokscope.cli.runs import export, list_runs, show
from grokscope.cli.sweep import cancel, doctor, pull_runs, status, sweep
from grokscope.cli.tasks import tasks
from grokscope.cli.train import fork, resume, train
from grokscope.errors import InputError
from grokscope.version import __version__

__all__ = ["COMMANDS", "run"]

BAD_INPUT = 2
COMMANDS: dict[str, Callable[..., None]] = {
    "train": train,
    "resume": resume,
    "fork": fork,
    "sweep": sweep,
    "status": status,
    "cancel": cancel,
    "doctor": doctor,
    "pull": pull_runs,
    "list": list_runs,
    "show": show,
    "export": export,
    "measures": measures,
    "measure": measure_run,
    "tasks": tasks,
    "groups": groups,
}
DESCRIPTION = """See grokking coming, prove why it happens, and steer it.

Start here:
  grokscope tasks              what can be learnt, and how it is named
  grokscope tasks add_mod97    one task: its pairs, answers and bases
  grokscope train add_mod97 --seeds 0:2 --out runs/first
  grokscope list runs/first    what became of them
  grokscope measures fsd       a measure: formula, source, null, example
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
        tyro.extras.subcommand_cli_from_dict(
            COMMANDS,
            prog="grokscope",
            description=DESCRIPTION,
            args=list(arguments) or ["--help"],
            config=(tyro.conf.HelptextFromCommentsOff,),
        )
    except InputError as error:
        print(f"grokscope: {error}", file=sys.stderr)
        return BAD_INPUT
    except BrokenPipeError:  # the reader of a pipe (head, less) has had enough
        sys.stderr.close()
        return 0
    return 0
