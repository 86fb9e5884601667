"""The tables of docs/scale.md, from what benchmarks/scale.py has measured."""

import re
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from benchmarks.page import made_by, record, table
from grokscope.jobs import costs
from grokscope.jobs.costs import cost_of
from grokscope.specs import Plan, RunSpec

PAGE = Path(__file__).parents[1] / "docs" / "scale.md"
BLOCK = re.compile(r"(<!-- scale: written by benchmarks/scale.py -->\n).*?(<!-- end of scale -->)", re.DOTALL)
Facts = dict[str, Any]


def constants() -> list[str]:
    """The cost model's constants, as `grokscope.jobs.costs` has them."""
    speeds = [["s, of one core", f"{costs.SPEED_OF_A_CORE:,.1f} run-steps/s", "`training-cpu.json`"]]
    speeds += [
        [f"s, of one H200 in {precision}", f"{speed:,.0f} run-steps/s", "`training-cuda.json`"]
        for precision, speed in costs.SPEED_OF_A_GPU.items()
    ]
    sizes = [
        ["l, an evaluation in the log", f"{costs.LOG_ROW} bytes", "stored runs, to 15 %"],
        ["f, spec, format, outcome and manifest", f"{costs.RUN_FILES:,} bytes", "the same"],
        ["e, a checkpoint's entry in the manifest", f"{costs.ENTRY} bytes", "the same"],
    ]
    return table(["constant", "value", "measured by"], [*speeds, *sizes])


def a_million(sizes: Sequence[Facts]) -> list[str]:
    """What 10⁶ runs would take: nothing of it is measured, all is a line through the two largest sizes."""
    smaller, larger = sizes[-2:]

    def line(*names: str) -> float:
        low, high = smaller, larger
        for name in names:
            low, high = low[name], high[name]
        slope = (float(high) - float(low)) / (larger["runs"] - smaller["runs"])
        return float(high) + slope * (1_000_000 - larger["runs"])

    def took(work: str, seconds: str = "processor_seconds") -> str:
        minutes = line(work, seconds) / 60
        return f"{minutes:,.1f} minutes in {line(work, 'peak_memory_bytes') / 2**30:,.1f} GiB"

    usual, least = (cost_of(Plan("x", (RunSpec(),), keep=keep)) for keep in ("weights", "none"))
    gpu = cost_of(Plan("x", (RunSpec(precision="tf32"),), device="cuda"))
    million = 1e6
    return [
        "At 10⁶ runs of the paper's kind, by a line through the last two sizes and by the model (none of it measured):",
        "",
        f"- planning takes {took('planning', 'planning_processor_seconds')}, the first list {took('indexing')}, later "
        f"ones {took('listing')}, `status` {took('status')}, the first picture of `watch` "
        f"{took('watching_unindexed', 'first_processor_seconds')};",
        f"- they are trained in {gpu.device_seconds * million / 86400:,.0f} days of one H200 in tf32, or "
        f"{usual.device_seconds * million / 86400 / 365:,.0f} years of one core;",
        f"- they leave {usual.bytes_stored * million / 1e12:,.0f} TB with `--keep weights` and "
        f"{least.bytes_stored * million / 1e9:,.0f} GB with `--keep none`, in one folder with as many folders inside.",
    ]


def shown_memory(facts: Facts) -> str:
    return f"{facts['peak_memory_bytes'] / 2**20:,.0f}"


def shown_seconds(facts: Facts, name: str = "processor_seconds") -> str:
    return f"{facts[name]:,.2f}" if facts[name] < 10 else f"{facts[name]:,.0f}"


def plans(sizes: Sequence[Facts]) -> list[str]:
    """What planning takes."""
    heads = ["planned runs", "shards", "planning, s", "reading the plan, s", "plan, MB", "peak, MiB"]
    rows = [
        [
            f"{size['runs']:,}",
            f"{one['shards']:,}",
            shown_seconds(one, "planning_processor_seconds"),
            shown_seconds(one, "reading_processor_seconds"),
            f"{one['plan_bytes'] / 1e6:.1f}",
            shown_memory(one),
        ]
        for size in sizes
        for one in (size["planning"],)
    ]
    return table(heads, rows)


def lists(sizes: Sequence[Facts]) -> list[str]:
    """What a list, the status and one run take."""
    commands = {"indexing": "first list, s", "listing": "`list`, s", "status": "`status`, s"}
    heads = [cell for command in commands.values() for cell in (command, "peak, MiB")]
    rows = [
        [
            f"{size['runs']:,}",
            *(cell for name in commands for cell in (shown_seconds(size[name]), shown_memory(size[name]))),
            shown_seconds(size["listing"], "find_processor_seconds"),
            f"{size['indexing']['index_bytes'] / 1e6:.1f}",
        ]
        for size in sizes
    ]
    return table(["runs on the disk", *heads, "finding one, s", "index, MB"], rows)


def watches(sizes: Sequence[Facts]) -> list[str]:
    """What the pictures of `watch` take."""
    heads = ["`watch` without an index, s", "with one, s", "the next picture, s", "logs read", "peak, MiB"]
    rows = [
        [
            f"{size['runs']:,}",
            shown_seconds(size["watching_unindexed"], "first_processor_seconds"),
            shown_seconds(size["watching"], "first_processor_seconds"),
            shown_seconds(size["watching"], "next_processor_seconds"),
            f"{size['watching']['logs']:,}",
            shown_memory(size["watching_unindexed"]),
        ]
        for size in sizes
    ]
    return table(["runs on the disk", *heads], rows)


def pages(sizes: Sequence[Facts]) -> list[str]:
    """What a report of all runs takes, and one of some."""
    rows = [
        [
            f"{size['runs']:,}",
            "rejected" if "refused" in one else f"{one['shown']:,}",
            shown_seconds(one),
            "–" if "refused" in one else f"{one['page_bytes'] / 1e6:.1f}",
            shown_memory(one),
        ]
        for size in sizes
        for one in (size["reporting"], size["reporting_some"])
    ]
    return table(["runs on the disk", "shown by `report`", "s", "page, MB", "peak, MiB"], rows)


def records(sizes: Sequence[Facts]) -> list[str]:
    """What packing, reading and judging records take."""
    heads = ["records", "log rows", "packing, s", "reading, s", "timelines, s", "evidence, s", "peak, MiB"]
    rows = [
        [
            f"{size['runs']:,}",
            f"{one['log_rows']:,}",
            *(f"{value:,.1f}" for value in one["processor_seconds"].values()),
            shown_memory(one),
        ]
        for size in sizes
        for one in (size["evidence"],)
    ]
    return table(heads, rows)


def tables() -> str:
    """The page's tables, from the stored measurement."""
    found = record("scale")
    sizes = found["measured"]
    blocks = [
        constants(),
        *(of(sizes) for of in (plans, lists, watches, pages, records)),
        [f"Seconds of one processor, files in memory; peaks include PyTorch's own. {made_by(found)}"],
        a_million(sizes),
    ]
    return "\n" + "".join("\n".join(block) + "\n\n" for block in blocks)


def with_tables(text: str) -> str:
    return BLOCK.sub(lambda match: match[1] + tables() + match[2], text)


def main() -> None:
    """Write the tables anew, without measuring."""
    PAGE.write_text(with_tables(PAGE.read_text(encoding="utf-8")), encoding="utf-8")


if __name__ == "__main__":
    main()
