"""Pictures of every section of a report, in light and dark, into docs/images/report.

python docs/make_screenshots.py report.html
"""

import argparse
from pathlib import Path

FLAGS = [
    "--no-sandbox",
    "--disable-gpu",
    "--disable-background-networking",
    "--disable-component-update",
    "--no-first-run",
]
FLAGS += ["--disable-sync", "--disable-quic"]
SECTIONS = ("overview", "runs", "run", "forks", "groups", "method")
COLOURS = 128  # of a picture: a page has few, and the file is a third
IMAGES = Path(__file__).parent / "images" / "report"


def main() -> None:
    """Open the report in Chromium and take its picture, section by section."""
    from PIL import Image
    from playwright.sync_api import sync_playwright

    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("report", type=Path)
    parser.add_argument("--out", type=Path, default=IMAGES)
    parser.add_argument("--sections", nargs="*", default=SECTIONS, help="with what to show there: 'run?run=HASH'")
    parser.add_argument("--schemes", nargs="*", default=("light", "dark"))
    parser.add_argument("--height", type=int, default=1000)
    parser.add_argument("--width", type=int, default=1280)
    parser.add_argument("--full", action="store_true")
    chosen = parser.parse_args()
    chosen.out.mkdir(parents=True, exist_ok=True)
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path="/usr/bin/chromium", args=FLAGS)
        for scheme in chosen.schemes:
            size = {"width": chosen.width, "height": chosen.height}
            page = browser.new_page(viewport=size, color_scheme=scheme, reduced_motion="reduce")
            page.on("console", lambda message: print("console:", message.text))
            page.on("pageerror", lambda error: print("error:", error))
            for section in chosen.sections:
                page.goto(f"{chosen.report.resolve().as_uri()}#/{section}")
                page.wait_for_selector("html[data-ready]")
                page.wait_for_timeout(200)
                place = chosen.out / f"{section.partition('?')[0]}-{scheme}.png"
                page.screenshot(path=place, full_page=chosen.full)
                Image.open(place).convert("RGB").quantize(COLOURS).save(place, optimize=True)
        browser.close()


if __name__ == "__main__":
    main()
