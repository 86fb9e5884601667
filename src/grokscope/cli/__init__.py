"""The command line: parses, prints, and turns bad input into one sentence and exit status 2."""

import io
import sys
from collections.abc import Callable, Sequence

import tyro

from grokscope.cli.bakeoff import bakeoff
from grokscope.cli.convert import convert
from grokscope.cli.figures import figure
from grokscope.cli.groups import groups
from grokscope.cli.measures import measure_run, measures
from grokscope.cli.query import query
from grokscope.cli.report import report, serve
from grokscope.cli.reproduce import claims, remake, reproduce
from grokscope.cli.runs import export, list_runs, show, tell
from grokscope.cli.sweep import cancel, doctor, pull_runs, status, sweep
from grokscope.cli.tasks import tasks
from grokscope.cli.train import fork, resume, train
from grokscope.cli.watch import watch
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
    "watch": watch,
    "list": list_runs,
    "show": show,
    "story": tell,
    "query": query,
    "export": export,
    "convert": convert,
    "report": report,
    "serve": serve,
    "measures": measures,
    "measure": measure_run,
    "reproduce": reproduce,
    "claims": claims,
    "remake": remake,
    "tasks": tasks,
    "groups": groups,
    "figure": figure,
    "bakeoff": bakeoff,
}
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
