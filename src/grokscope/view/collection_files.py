"""A collection written: Parquet tables of records, described for people and programs.

Every evaluation is kept; of columns that a study names as sparse, because none of its claims reads them, some are left
out, for they hardly compress.
"""

import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from hashlib import sha256
from math import isnan, nan
from pathlib import Path
from typing import Any

from grokscope.errors import InputError, plural
from grokscope.files import make_folder, write_atomically
from grokscope.runs.logs import Columns
from grokscope.runs.records import RunRecord
from grokscope.specs import Cadence, RunSpec, Seeds
from grokscope.version import __version__
from grokscope.view import require_module
from grokscope.view.collection import DESCRIPTION, TABLES, UNDEFINED
from grokscope.view.signals import describe_column

__all__ = ["LARGEST", "cell_of", "write_collection"]

LARGEST = 30 * 10**6  # bytes of a whole collection
DATASHEET = "DATASHEET.md"
BEGINNING, EVERY = 1_000, 500  # of sparse columns: all steps up to the first, and multiples of the second
NO_PARENT = "0" * 16
LICENSE = "https://spdx.org/licenses/MIT.html"
CONTEXT = {
    "@language": "en",
    "@vocab": "https://schema.org/",
    "sc": "https://schema.org/",
    "cr": "http://mlcommons.org/croissant/",
    "dct": "http://purl.org/dc/terms/",
    "conformsTo": "dct:conformsTo",
    "recordSet": "cr:recordSet",
    "field": "cr:field",
    "dataType": {"@id": "cr:dataType", "@type": "@vocab"},
    "source": "cr:source",
    "fileObject": "cr:fileObject",
    "extract": "cr:extract",
    "column": "cr:column",
    "references": "cr:references",
    "key": "cr:key",
    "isLiveDataset": "cr:isLiveDataset",
}
KINDS = {"string": "sc:Text", "bool": "sc:Boolean", "float": "sc:Float", "double": "sc:Float"}
ABOUT = {
    "cells": "One row for each configuration: runs of one cell differ in their seeds alone.",
    "runs": "One row for each run: its cell, seeds, parent, outcome, events by all evaluations, and its spec as JSON.",
    "curves": "One row for each evaluation.",
    "checkpoints": "One row for each checkpoint that was measured.",
    "readings": "One row for each checkpoint at which every reading of FSD and rank was taken.",
}


def write_collection(
    records: Sequence[RunRecord], folder: Path, name: str, title: str, sparse: Sequence[str] = ()
) -> list[Path]:
    """Write the tables, their description and their data sheet; the same records give the same bytes.

    `sparse` are beginnings of names of columns that are kept at every step up to 1,000 and at multiples of 500.

    Example::

        write_collection(read_records(Path("results/mine")), Path("collection"), "mine", "My study")
    """
    if not records:
        raise InputError("a collection needs at least one record")
    arrow, parquet = require_module("pyarrow", "data"), require_module("pyarrow.parquet", "data")
    make_folder(folder)
    tables = _tables(records, arrow, tuple(sparse))
    paths, contents = [], {}
    for table, found in tables.items():
        stream = arrow.BufferOutputStream()
        apart = _varied(found)
        parquet.write_table(
            found,
            stream,
            compression="zstd",
            compression_level=19,
            use_dictionary=[name for name in found.column_names if name not in apart],
            use_byte_stream_split=apart,
        )
        contents[table] = stream.getvalue().to_pybytes()
        paths.append(folder / f"{table}.parquet")
        write_atomically(paths[-1], contents[table])
    rule = sparse_rule(sparse)
    described = _described(name, title, rule, tables, contents)
    texts = {
        DESCRIPTION: json.dumps(described, indent=1, ensure_ascii=False) + "\n",
        DATASHEET: _datasheet(name, title, rule, records, tables, contents),
    }
    for file, text in texts.items():
        write_atomically(folder / file, text.encode())
        paths.append(folder / file)
    return paths


def cell_of(spec: RunSpec) -> str:
    """The name of a run's cell: of its spec without its seeds and cadences, and of a fork without its parent's name.

    >>> cell_of(RunSpec().with_seed(1)) == cell_of(RunSpec().with_seed(2))
    True
    """
    fork = None if spec.fork is None else replace(spec.fork, parent=NO_PARENT)
    plain = Cadence()
    return replace(spec, seeds=Seeds(), fork=fork, checkpoints=plain, measurements=plain).content_hash


def sparse_rule(sparse: Sequence[str]) -> str:
    """Which evaluations are kept of which columns, in words.

    >>> sparse_rule([])
    'Every evaluation is kept.'
    >>> "begin with norm_ or fingerprint only those up to step 1,000" in sparse_rule(["norm_", "fingerprint"])
    True
    """
    if not sparse:
        return "Every evaluation is kept."
    return (
        f"Every evaluation is kept, but of columns whose names begin with {' or '.join(sparse)} only those up to step "
        f"{BEGINNING:,} and at multiples of {EVERY}; between them they are null. No event or claim is read from these."
    )


def _tables(records: Sequence[RunRecord], arrow: Any, sparse: tuple[str, ...]) -> dict[str, Any]:
    from grokscope.measures.readings import all_readings

    of_readings = {column for one in all_readings() for column in (one.fsd_column, one.rank_column)}
    in_order = sorted(records, key=lambda record: (cell_of(record.spec), record.name))
    curves = [(record, _kept(record, sparse)) for record in in_order]
    measured = [(record, record.checkpoints) for record in in_order if record.checkpoints]
    read = {record.name for record, columns in measured if of_readings & columns.keys()}
    found = {
        "cells": _table(arrow, _cells(in_order)),
        "runs": _table(arrow, [_run(record) for record in in_order]),
        "curves": _long(arrow, curves),
        "checkpoints": _long(arrow, [one for one in measured if one[0].name not in read]),
        "readings": _long(arrow, [one for one in measured if one[0].name in read]),
    }
    return {name: found[name] for name in TABLES if len(found[name])}


def _kept(record: RunRecord, sparse: tuple[str, ...]) -> Columns:
    """The evaluations, sparse columns undefined where left out: by the step alone, as of forks so of their parents."""
    kept = [step <= BEGINNING or step % EVERY == 0 for step in record.evaluations["step"]]
    return {
        name: [value if is_kept else nan for value, is_kept in zip(values, kept, strict=True)]
        if name.startswith(sparse)
        else values
        for name, values in record.evaluations.items()
    }


def _cells(records: Iterable[RunRecord]) -> list[dict[str, Any]]:
    """What the runs of each cell share, and how many there are."""
    by_cell: dict[str, list[RunRecord]] = {}
    for record in records:
        by_cell.setdefault(cell_of(record.spec), []).append(record)
    return [
        {
            "cell": cell,
            "runs": len(own),
            "experiments": ", ".join(sorted({member.experiment for one in own for member in one.made_for})),
            **_settings(own[0].spec),
        }
        for cell, own in by_cell.items()
    ]


def _settings(spec: RunSpec) -> dict[str, Any]:
    training, model = spec.training, spec.architecture
    return {
        "task": spec.task,
        "train_fraction": spec.train_fraction,
        "shuffled_labels": spec.shuffled_labels,
        "weight_decay": training.weight_decay,
        "learning_rate": training.learning_rate,
        "steps": training.steps,
        "fork_step": spec.fork.step if spec.fork else None,
        "layers": model.layers,
        "width": model.width,
        "optimizer": training.optimizer,
        "precision": spec.precision,
        "norm_hold": spec.norm_hold.to_json() if spec.norm_hold else None,
        "trigger": spec.trigger.to_json() if spec.trigger else None,
        "spec": json.dumps(replace(spec, seeds=Seeds()).to_short_dict(), sort_keys=True),
    }


def _run(record: RunRecord) -> dict[str, Any]:
    facts, seeds = record.summary(), record.spec.seeds
    events = ("outcome", "failed_at", "stopped_early", "last_step", "memorized", "synchronized", "grokked", "stable")
    return {
        "run": record.name,
        "cell": cell_of(record.spec),
        "split_seed": seeds.split,
        "initialization_seed": seeds.initialization,
        "order_seed": seeds.data_order,
        "parent": record.spec.fork.parent if record.spec.fork else None,
        **{name: facts[name] for name in (*events, "stability")},
        "commit": record.outcome.provenance.get("commit"),
        "device": record.outcome.provenance.get("device"),
        "spec": record.spec.to_json(),
        "details": facts["details"],
        "made_for": facts["made_for"],
        UNDEFINED: json.dumps([_nowhere_defined(record.evaluations), _nowhere_defined(record.checkpoints)]),
    }


def _nowhere_defined(columns: Columns) -> list[str]:
    """The columns of a run that are null in all of its rows, as those are that it lacks."""
    return [name for name, values in columns.items() if all(map(isnan, values))]


def _table(arrow: Any, rows: Sequence[Mapping[str, Any]]) -> Any:
    names = list(rows[0])
    return arrow.table({name: _facts(arrow, [row[name] for row in rows]) for name in names})


def _facts(arrow: Any, values: list[Any]) -> Any:
    known = {type(value) for value in values if value is not None}
    if known <= {int, float} and float in known:
        return arrow.array(values, arrow.float64())
    return arrow.array(values, None if known else arrow.string())


def _long(arrow: Any, parts: Sequence[tuple[RunRecord, Mapping[str, Sequence[int | float]]]]) -> Any:
    """Runs under each other: step as a whole number, what is measured as float32, whole numbers beyond it as int64."""
    names = dict.fromkeys(name for _, columns in parts for name in columns)
    lengths = [len(columns["step"]) for _, columns in parts]
    runs = [record.name for (record, _), length in zip(parts, lengths, strict=True) for _ in range(length)]
    found = {"run": arrow.array(runs, arrow.string()).dictionary_encode()}
    kinds = {"step": arrow.int32(), "fingerprint": arrow.int64()}
    for name in names:
        values: list[int | float | None] = []
        for (_, columns), length in zip(parts, lengths, strict=True):
            values += columns.get(name, [None] * length)
        found[name] = arrow.array(values, kinds.get(name, arrow.float32()), from_pandas=True)  # NaN is null
    return arrow.table(found)


def _varied(table: Any) -> list[str]:
    """Columns of measured numbers that hardly repeat: without a dictionary and with their bytes apart, a third smaller.

    What repeats, as shares of some thousand pairs do, is smaller with a dictionary.
    """
    return [
        name
        for name in table.column_names
        if str(table.schema.field(name).type) == "float" and 2 * len(table.column(name).unique()) > len(table)
    ]


def _described(
    name: str, title: str, rule: str, tables: Mapping[str, Any], contents: Mapping[str, bytes]
) -> dict[str, Any]:
    """The tables in the vocabulary of Croissant 1.0 (MLCommons)."""
    return {
        "@context": CONTEXT,
        "@type": "sc:Dataset",
        "conformsTo": "http://mlcommons.org/croissant/1.0",
        "name": name,
        "description": f"{title}: training runs with their evaluations and measures. {rule}",
        "license": LICENSE,
        "version": __version__,
        "isLiveDataset": False,
        "distribution": [
            {
                "@type": "cr:FileObject",
                "@id": f"{table}.parquet",
                "name": f"{table}.parquet",
                "contentUrl": f"{table}.parquet",
                "encodingFormat": "application/vnd.apache.parquet",
                "contentSize": f"{len(content)} B",
                "sha256": sha256(content).hexdigest(),
            }
            for table, content in contents.items()
        ],
        "recordSet": [
            {
                "@type": "cr:RecordSet",
                "@id": table,
                "name": table,
                "description": ABOUT[table],
                "field": [_field(table, column) for column in found.schema],
            }
            for table, found in tables.items()
        ],
    }


def _field(table: str, column: Any) -> dict[str, Any]:
    kind = str(column.type)
    described = {
        "@type": "cr:Field",
        "@id": f"{table}/{column.name}",
        "name": column.name,
        "description": describe_column(column.name),
        "dataType": "sc:Text" if kind.startswith("dictionary") else KINDS.get(kind, "sc:Integer"),
        "source": {"fileObject": {"@id": f"{table}.parquet"}, "extract": {"column": column.name}},
    }
    other = {"run": "runs", "cell": "cells"}.get(column.name)
    if other is not None and other != table:
        described["references"] = {"field": {"@id": f"{other}/{column.name}"}}
    return described


def _datasheet(
    name: str,
    title: str,
    rule: str,
    records: Sequence[RunRecord],
    tables: Mapping[str, Any],
    contents: Mapping[str, bytes],
) -> str:
    """The data sheet: what there is, how it was made, what was left out, and what it must not be used for."""
    evaluations = sum(len(record.evaluations["step"]) for record in records)
    steps = sum(one.spec.training.steps - (one.spec.fork.step if one.spec.fork else 0) for one in records)
    made = sorted({str(record.outcome.provenance.get("commit")) for record in records})
    devices = sorted({str(record.outcome.provenance.get("device")) for record in records})
    size = sum(map(len, contents.values()))
    lines = [
        f"# Data sheet: {name}",
        "",
        f"{title}. {plural(len(records), 'training run')}, {steps:,} optimiser steps, {evaluations:,} evaluations. "
        f"{size:,} bytes of Parquet.",
        "",
        "| table | rows | columns | what |",
        "|---|---|---|---|",
        *(f"| {one} | {len(found):,} | {found.num_columns} | {ABOUT[one]} |" for one, found in tables.items()),
        "",
        "**Why it was made.** To judge claims about grokking by many runs of each configuration, forks with their "
        "parents, and runs that cannot generalise.",
        "",
        f"**How it was made.** By grokscope {__version__}, commit {', '.join(made)}, on {', '.join(devices)}. No "
        "person or personal data is in it: tasks are tables of symbols that a program computes.",
        "",
        f"**What was left out.** {rule} Measured numbers are float32, which has seven digits; undefined ones are null.",
        "",
        "**What it is not.** A run that had not grokked by its last step is censored there, and no negative; only "
        "shuffled labels and tables without structure cannot grok. Columns that use the answers of all pairs (tier 5 "
        "in `croissant.json`) are no forecast from training data alone.",
        "",
        "**Reading it.** `grokscope.collection(FOLDER)`, `pandas.read_parquet`, `polars.read_parquet`, or DuckDB: "
        "`select * from 'runs.parquet' join 'curves.parquet' using (run)`. Licence: MIT.",
        "",
    ]
    return "\n".join(lines)
