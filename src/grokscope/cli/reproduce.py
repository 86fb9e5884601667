"""`grokscope reproduce`: the runs of a study trained, its tables and figures written, its claims judged."""

import json
from pathlib import Path
from typing import Annotated, Literal

import tyro

from grokscope.cli.options import ExecutorOptions, File, Flag, HardwareOptions, JsonFlag, Precision, Whole, reject

__all__ = ["reproduce"]

Names = Annotated[tuple[str, ...], tyro.conf.arg(metavar="NAME ...", help_behavior_hint="")]


def reproduce(
    study: Annotated[str | None, tyro.conf.Positional, tyro.conf.arg(metavar="[STUDY]", help_behavior_hint="")] = None,
    *,
    out: Annotated[Path | None, tyro.conf.arg(metavar="DIR", help_behavior_hint="(default: reproduction)")] = None,
    only: Names = (),
    without: Names = (),
    n_seeds: Whole = None,
    quick: Flag = False,
    precision: Annotated[Precision | None, tyro.conf.arg(metavar="{float32,tf32,bf16}", help_behavior_hint="")] = None,
    damaged: Annotated[
        Literal["stop", "rerun", "skip"] | None,
        tyro.conf.arg(metavar="{stop,rerun,skip}", help_behavior_hint="(default: stop)"),
    ] = None,
    hardware: HardwareOptions,
    executor: ExecutorOptions,
    part: Whole = None,
    dry_run: Flag = False,
    plan_only: File = None,
    seal: File = None,
    list_: Annotated[Flag, tyro.conf.arg(name="list", help_behavior_hint="")] = False,
    list_parts: Flag = False,
    claims: Flag = False,
    remake: Flag = False,
    collection: Flag = False,
    figure: Annotated[str | None, tyro.conf.arg(metavar="NAME", help_behavior_hint="")] = None,
    from_: Annotated[tuple[Path, ...], tyro.conf.arg(name="from", metavar="PATH ...", help_behavior_hint="")] = (),
    as_json: JsonFlag = False,
) -> None:
    """Reproduce a study: train its runs, write its tables and figures, judge its claims.

    It can be stopped at any moment and continues with the same command; finished runs are used again. The options
    --list, --claims, --remake and --figure train nothing.

    Args:
        study: A study, as --list lists them, the arXiv number of a paper that one judges, or a folder with a study of
            your own (study.py).
        out: The folder for what is written: runs and results, with --remake results, with --figure figures.
        only: Tables, figures, supplementary analyses or experiments of the study; all if not given.
        without: Names to exclude.
        n_seeds: Number of seeds of every configuration; the study's own if not given.
        quick: A reduced version for two cores; its verdicts are provisional, and most claims then have too few runs.
        precision: Arithmetic; float32 on a CPU and tf32 on CUDA if not given.
        damaged: What to do with a damaged run: stop and name it, rerun it (the old one is kept), or skip it.
        part: Train this part alone, as --list-parts numbers them, and pack its records into one file in --out.
        dry_run: Print runs, steps, time and disk space, and train nothing.
        plan_only: Write the plan to this file, for `python -m grokscope.jobs.worker --spec FILE`, and train nothing.
        seal: The committed seal of forecasters and thresholds, which the test runs of `foresight` need.
        list_: List the studies with their papers, verdicts and cost, or what --only can name of one.
        list_parts: List the parts of the study that take minutes each; with --from, which are missing there.
        claims: Print the claims with the verdicts in the folder of results given by --from; without it, their rules.
        remake: Rewrite tables, figures and claims from the records in --from; nothing is trained.
        collection: Write the records in --from as Parquet tables with a description, into the folder --out.
        figure: Draw one figure, or all, from the runs or records in --from.
        from_: What is read: folders of runs, files of packed records (*.records.gz) or folders of such files.

    Examples:
        grokscope reproduce --list
        grokscope reproduce 2606.12966 --dry-run
        grokscope reproduce synchronization --only tab-wd fig-wd --n-seeds 4 --dry-run
        grokscope reproduce synchronization --claims --from results/synchronization
        grokscope reproduce synchronization --remake --from results/synchronization --out results/again
        grokscope reproduce synchronization --figure fig-two-phase --from runs/paper --out figures
        grokscope reproduce synchronization --list-parts
        grokscope reproduce synchronization --part 3 --dry-run
        grokscope reproduce bakeoff --quick --dry-run
        grokscope reproduce examples/own_study --dry-run
    """
    modes = {
        "--list": list_,
        "--list-parts": list_parts,
        "--claims": claims,
        "--remake": remake,
        "--collection": collection,
        "--figure": figure is not None,
    }
    training = {
        "--only": only,
        "--without": without,
        "--n-seeds": n_seeds is not None and not list_parts,
        "--quick": quick,
        "--precision": precision and not list_parts,
        "--part": part is not None,
        "--damaged": damaged,
        "--device or --deterministic": hardware != HardwareOptions(),
        "--executor": executor != ExecutorOptions(),
        "--dry-run": dry_run,
        "--plan-only": plan_only,
        "--seal": seal,
    }
    chosen, unused = ([name for name, is_given in options.items() if is_given] for options in (modes, training))
    reject(
        {
            f"{' and '.join(chosen[:2])} exclude each other: give one of them": len(chosen) > 1,
            f"{''.join(chosen[:1])} trains nothing: leave out {''.join(unused[:1])}": chosen and unused,
            "--from has no effect here: it needs --claims, --remake, --collection, --figure or --list-parts": from_
            and not (claims or remake or collection or figure or list_parts),
            "--part is a part of the whole study: leave out --only, --without, --quick and --damaged": part is not None
            and (only or without or quick or damaged),
            "--remake needs --from, where the records are, and --out, the folder for the results": remake
            and not (from_ and out),
            "--collection needs --from, where the records are, and --out, the folder for the tables": collection
            and not (from_ and out),
            "--figure needs --from, where the runs or records are": figure and not from_,
            "name a study; `grokscope reproduce --list` lists them": study is None and not list_,
            f"--n-seeds must lie in 1 to 10,000, got {n_seeds}": n_seeds is not None and not 1 <= n_seeds <= 10_000,
            "--quick has its own seeds; leave out --n-seeds": quick and n_seeds is not None,
            "--dry-run writes nothing: leave out --plan-only": dry_run and plan_only is not None,
            f"{''.join(chosen[:1])} writes nothing: leave out --out": (claims or list_ or list_parts)
            and out is not None,
            "--dry-run and --plan-only train nothing: leave out --damaged": damaged
            and (dry_run or plan_only is not None),
            "--plan-only writes a plan for a worker: leave out --executor": executor.executor != "local" and plan_only,
            "--json has no effect with --dry-run, --plan-only, --part, --collection or --figure": as_json
            and (dry_run or plan_only or figure or collection or part is not None),
        }
    )
    executor.check()
    if study is not None:
        from grokscope.studies.names import reject_unknown_study

        reject_unknown_study(study)

    from grokscope.cli import study_parts, study_runs
    from grokscope.studies import find_study

    if study is None:
        from grokscope.cli.study_list import print_studies

        print_studies(as_json)
        return
    found = find_study(study)
    if list_:
        parts = [*found.items, *found.experiments]
        print(json.dumps(parts) if as_json else "\n".join(parts))
    elif list_parts:
        study_parts.print_parts(found, from_, precision, n_seeds, as_json)
    elif part is not None:
        study_parts.train_part(
            found,
            part,
            out or Path("reproduction"),
            n_seeds=n_seeds,
            precision=precision,
            hardware=hardware,
            executor=executor,
            dry_run=dry_run,
            plan_only=plan_only,
            seal=seal,
        )
    elif claims:
        study_runs.print_claims(found, from_, as_json)
    elif figure is not None:
        study_runs.draw(found, figure, from_, out or Path("figures"))
    elif collection:
        study_runs.collect(found, from_, out or Path())
    elif remake:
        study_runs.remake(found, from_, out or Path(), as_json)
    else:
        study_runs.train_study(
            found,
            out or Path("reproduction"),
            only=only,
            without=without,
            n_seeds=n_seeds,
            quick=quick,
            precision=precision,
            damaged=damaged or "stop",
            hardware=hardware,
            executor=executor,
            dry_run=dry_run,
            plan_only=plan_only,
            seal=seal,
            as_json=as_json,
        )
