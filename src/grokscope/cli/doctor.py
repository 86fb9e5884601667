"""`grokscope doctor`: whether every file of a folder is what was written, and what can be done if not."""

import json
import sys
from pathlib import Path

from rich.console import Console
from rich.markup import escape

from grokscope.cli.arguments import Flag, JsonFlag, Place
from grokscope.errors import InputError
from grokscope.files import named
from grokscope.runs import is_remote, open_store
from grokscope.runs.doctor import Finding, examine, examine_remote
from grokscope.runs.remote import Remote

__all__ = ["doctor"]

UNSOUND = 1


def doctor(out: Place, repair: Flag = False, as_json: JsonFlag = False) -> None:
    """Check every file of a folder against its checksum, and say what is wrong; exit status 1 if anything is.

    Example: grokscope doctor runs/decays --repair

    Args:
        out: A folder of runs, or a remote address.
        repair: Mend what can be: damaged runs are opened again before the damage (in a remote store, their damaged
            commits are forgotten), and `grokscope resume` computes the lost bytes once more.
        as_json: Print facts for programs instead of people.
    """
    if is_remote(out):
        findings = list(examine_remote(Remote(out), repair))
    else:
        if not Path(out).is_dir():
            raise InputError(f"there is no folder {named(Path(out))}")
        findings = list(examine(open_store(out), repair))
    if as_json:
        print(json.dumps([vars(finding) for finding in findings]))
    else:
        _tell_findings(findings, out)
    if not all(finding.mended for finding in findings):
        sys.exit(UNSOUND)


def _tell_findings(findings: list[Finding], out: str) -> None:
    console = Console(highlight=False)
    for finding in findings:
        remedy = f"; {'mended: ' if finding.mended else ''}{finding.remedy}" if finding.remedy else ""
        console.print(escape(f"{finding.run}: {finding.problem}{remedy}"), soft_wrap=True)
    wrong = sum(not finding.mended for finding in findings)
    mendable = sum(bool(finding.remedy) and not finding.mended for finding in findings)
    whole = f"every file in {escape(out)} is whole"
    console.print(f"{len(findings)} findings, {len(findings) - wrong} mended" if findings else whole)
    if mendable:
        console.print(f"{mendable} can be mended with --repair, and then `grokscope resume {escape(out)}`")
