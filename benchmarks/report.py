"""What the page costs for 500 runs: its size, how long it takes to make, and until a person can use it in Chromium.

The runs are drawn (`benchmarks.synthetic`): 151 evaluations of 11 columns each.
"""

import argparse
import shutil
import statistics
import tempfile
import time
from pathlib import Path

from benchmarks.provenance import save
from benchmarks.synthetic import EVALUATIONS, synthetic_records
from grokscope.runs.packing import save_records
from grokscope.view.page import source_of, write_page

FLAGS = ["--no-sandbox", "--disable-gpu", "--disable-background-networking", "--disable-component-update"]
FLAGS += ["--no-first-run", "--disable-sync", "--disable-quic"]
READY = "() => Number(document.documentElement.dataset.ready || 0)"


def ready_after(page: object, address: str) -> float:
    """Milliseconds from the navigation until every control works, by the page's own clock."""
    page.goto("about:blank")  # type: ignore[attr-defined]
    page.goto(address)  # type: ignore[attr-defined]
    page.wait_for_selector("html[data-ready]")  # type: ignore[attr-defined]
    return float(page.evaluate(READY))  # type: ignore[attr-defined]


def main() -> None:
    from playwright.sync_api import sync_playwright

    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--runs", type=int, default=500)
    parser.add_argument("--rounds", type=int, default=5)
    chosen = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder, sync_playwright() as playwright:
        save_records(Path(folder) / "drawn.records.gz", synthetic_records(chosen.runs))
        path = Path(folder) / "report.html"
        start = time.perf_counter()
        size = write_page(path, source_of(Path(folder)))
        made = time.perf_counter() - start
        browser = playwright.chromium.launch(executable_path=shutil.which("chromium"), args=FLAGS)
        page, version = browser.new_page(), browser.version
        sections = {}
        for section in ("overview", "runs", "forks"):
            times = [ready_after(page, f"{path.as_uri()}#/{section}") for _ in range(chosen.rounds)]
            sections[section] = {"median_ms": statistics.median(times), "slowest_ms": max(times)}
        browser.close()
    for section, found in sections.items():
        print(f"{section:>10} usable after {found['median_ms']:>6,.0f} ms, at most {found['slowest_ms']:,.0f}")
    print(f"{chosen.runs} runs: {size / 1e6:.2f} MB, made in {made:.1f} s")
    measured = {"runs": chosen.runs, "evaluations": EVALUATIONS, "bytes": size, "seconds_to_make": round(made, 2)}
    save("report", {**measured, "rounds": chosen.rounds, "chromium": version, "usable_after": sections})


if __name__ == "__main__":
    main()
