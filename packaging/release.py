"""`make release`: checks that a release is ready, and builds its wheel and sdist into dist/. Nothing is uploaded.

Ready is: a clean tree, a version that no tag has yet, a changelog whose newest section is that version with its date
and leaves nothing unreleased, and a citation with the same version and date.
"""

import re
import shutil
import subprocess
import sys
from hashlib import sha256
from pathlib import Path

__all__ = ["build", "main", "problems"]

ROOT = Path(__file__).parents[1]
VERSION = re.compile(r'^__version__ = "([^"]+)"$', re.MULTILINE)
SECTION = re.compile(r"^## (.+)$", re.MULTILINE)
RELEASED = re.compile(r"(\S+) \((\d{4}-\d{2}-\d{2})\)")


def version_of(root: Path) -> str:
    """The version of the sources."""
    found = VERSION.search((root / "src" / "grokscope" / "version.py").read_text(encoding="utf-8"))
    if found is None:
        raise SystemExit("src/grokscope/version.py names no version")
    return found[1]


def problems(root: Path) -> list[str]:
    """What is not ready, a sentence each."""
    version = version_of(root)
    date, found = _changelog_problems((root / "CHANGELOG.md").read_text(encoding="utf-8"), version)
    found += _citation_problems((root / "CITATION.cff").read_text(encoding="utf-8"), version, date)
    if changed := _git(root, "status", "--porcelain").splitlines():
        found.append(
            f"the tree is not clean: {changed[0].strip()}" + f" and {len(changed) - 1} more" * (len(changed) > 1)
        )
    if _git(root, "tag", "--list", f"v{version}"):
        found.append(f"there is a tag v{version} already; set another version in src/grokscope/version.py")
    return found


def _changelog_problems(text: str, version: str) -> tuple[str | None, list[str]]:
    """The date of the version's section, and what is wrong with it."""
    _, *parts = SECTION.split(text)
    sections = dict(zip(parts[::2], parts[1::2], strict=True))
    found = []
    if re.search(r"^- ", sections.pop("Unreleased", ""), re.MULTILINE):
        found.append(f"CHANGELOG.md has entries under Unreleased; move them to a section '## {version} (YYYY-MM-DD)'")
    newest = next(iter(sections), "")
    released = RELEASED.fullmatch(newest)
    if released is None or released[1] != version:
        got = f"got '## {newest}'" if newest else "and there is none"
        return None, [*found, f"the newest section of CHANGELOG.md must be '## {version} (YYYY-MM-DD)', {got}"]
    return released[2], found


def _citation_problems(text: str, version: str, date: str | None) -> list[str]:
    expected = {"version": version, "date-released": date}
    known = {name: _citation_field(text, name) for name in expected}
    return [
        f"CITATION.cff must have '{name}: {value}', got {known[name] or 'none'}"
        for name, value in expected.items()
        if value is not None and known[name] != value
    ]


def _citation_field(text: str, name: str) -> str | None:
    found = re.search(rf"^{name}: *[\"']?([^\"'\n]+)", text, re.MULTILINE)
    return found[1].strip() if found else None


def _git(root: Path, *words: str) -> str:
    return subprocess.run(["git", *words], cwd=root, capture_output=True, text=True, check=True).stdout


def build(root: Path, out: Path) -> list[Path]:
    """The sdist, and the wheel that is built of it; what the folder held before is removed."""
    shutil.rmtree(out, ignore_errors=True)
    subprocess.run(
        [sys.executable, "-m", "build", "--outdir", str(out), str(root)], check=True, stdout=subprocess.DEVNULL
    )
    return sorted(out.iterdir())


def main(root: Path = ROOT) -> int:
    """Check, build, and say what is left to do by hand."""
    if found := problems(root):
        print("this is no release yet:", *(f"- {problem}" for problem in found), sep="\n", file=sys.stderr)
        return 2
    for path in build(root, root / "dist"):
        print(f"{sha256(path.read_bytes()).hexdigest()}  dist/{path.name}")
    print(f"nothing was uploaded; tag the commit with: git tag v{version_of(root)}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
