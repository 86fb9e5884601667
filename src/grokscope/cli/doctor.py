"""`grokscope doctor`: whether every file of a folder is as it was written, and what can be repaired."""

import json
import sys

from grokscope.cli.options import Flag, JsonFlag, Place
from grokscope.errors import for_shell, plural
from grokscope.runs import is_remote, open_runs, open_store
from grokscope.runs.remote import Remote

__all__ = ["doctor"]

UNSOUND = 1


def doctor(folder: Place, repair: Flag = False, as_json: JsonFlag = False) -> None:
    """Check every file of a folder against its checksum and its run.

    Runs that are being trained are named and not examined. The exit status is 1 if anything is wrong.

    Args:
        repair: Truncate damaged runs to the last intact state, and set damaged plans aside; in a remote store, delete
            damaged commits.

    Examples:
        grokscope doctor runs/decays --repair
    """
    if not is_remote(folder):
        open_runs(folder)  # rejects what is not there
    from grokscope.runs.doctor import examine
    from grokscope.runs.remote_doctor import examine_remote

    skipped: list[str] = []
    if is_remote(folder):
        findings = list(examine_remote(Remote(folder), repair))
    else:
        findings = list(examine(open_store(folder), repair, skipped.append))
    for sentence in skipped:
        print(sentence, file=sys.stderr)
    if as_json:
        print(json.dumps([vars(finding) for finding in findings]))
    else:
        for finding in findings:
            remedy = f"; {'repaired: ' if finding.mended else ''}{finding.remedy}" if finding.remedy else ""
            print(f"{finding.run}: {finding.problem}{remedy}")
        repaired = sum(finding.mended for finding in findings)
        counts = f"{plural(len(findings), 'finding')}, {repaired} repaired"
        every = f"every file in {folder}{' but those of the runs above' if skipped else ''}"
        print(counts if findings else f"{every} is as it was written")
        if left := sum(bool(finding.remedy) for finding in findings if not finding.mended):
            print(f"{left} can be repaired with --repair, and then `grokscope resume {for_shell(folder)}`")
    if not all(finding.mended for finding in findings):
        sys.exit(UNSOUND)
