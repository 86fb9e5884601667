"""The studies of the package, each with the papers it judges, its stored verdicts, and what its runs cost."""

import json
from typing import Any

from rich.console import Console

from grokscope.cli.frames import duration
from grokscope.errors import plural
from grokscope.jobs.costs import cost_of
from grokscope.studies import Study, find_study, study_names
from grokscope.studies.parts import parts_of
from grokscope.studies.verdicts import stored_verdicts

__all__ = ["print_studies"]


def print_studies(as_json: bool) -> None:
    """Print every study."""
    with Console(stderr=True).status("counting the runs of all studies"):
        rows = [_row(find_study(name)) for name in study_names()]
    if as_json:
        print(json.dumps(rows, ensure_ascii=False))
        return
    for row in rows:
        papers = (f"arXiv:{number} ({title})" for number, title in row["papers"].items())
        print(f"{row['study']}: {row['title']}")
        print(f"  papers    {'; '.join(papers) or 'none'}")
        print(f"  verdicts  {_describe_verdicts(row)}")
        time = f"about {duration(60 * row['gpu_minutes'])} in parts on one H200"
        print(f"  cost      {plural(row['runs'], 'run')}, {row['run_steps']:,} run-steps, {time}")


def _row(study: Study) -> dict[str, Any]:
    """A study in columns; the verdicts are null where no runs are stored. The cost is that of its parts."""
    parts = parts_of(study, "tf32")
    return {
        "study": study.name,
        "title": study.title,
        "papers": dict(study.papers),
        "claims": len(study.claims),
        "verdicts": stored_verdicts().get(study.name),
        "runs": sum(len(part.plan.runs) for part in parts),
        "run_steps": sum(cost_of(part.plan).steps for part in parts),
        "gpu_minutes": round(sum(part.seconds for part in parts) / 60, 1),
    }


def _describe_verdicts(row: dict[str, Any]) -> str:
    claims = plural(row["claims"], "claim") if row["claims"] else "no claims"
    if row["verdicts"] is None:
        return f"no runs yet ({claims})"
    counts = ", ".join(f"{count} {verdict}" for verdict, count in row["verdicts"].items())
    return f"{claims}: {counts}" if counts else f"{claims}; its results are tables"
