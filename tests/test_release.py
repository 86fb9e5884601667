"""A release is made only of what is ready; every other state is named."""

import subprocess
from pathlib import Path

import pytest

from scripts import module_at

release = module_at(Path(__file__).parents[1] / "packaging" / "release.py")

READY = {
    "src/grokscope/version.py": '__version__ = "0.2.0"\n',
    "CHANGELOG.md": "## Unreleased\n\n## 0.2.0 (2026-12-01)\n\n- Something.\n\n## 0.1.0 (2026-01-01)\n\n- All.\n",
    "CITATION.cff": 'version: 0.2.0\ndate-released: "2026-12-01"\n',
    ".gitignore": "dist/\n",
}


def git(root: Path, *words: str) -> None:
    identity = ["-c", "user.name=nobody", "-c", "user.email=nobody@localhost"]
    subprocess.run(["git", *identity, *words], cwd=root, check=True, capture_output=True)


@pytest.fixture
def ready(tmp_path: Path) -> Path:
    """A repository from which a release can be made."""
    for name, content in READY.items():
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text(content)
    git(tmp_path, "init", "--quiet")
    git(tmp_path, "add", "--all")
    git(tmp_path, "commit", "--quiet", "--message", "Begin")
    return tmp_path


def changed(root: Path, name: str, old: str, new: str) -> None:
    text = (root / name).read_text()
    assert old in text
    (root / name).write_text(text.replace(old, new))
    git(root, "commit", "--quiet", "--all", "--message", "Change")


def test_what_is_ready_has_no_problems(ready: Path) -> None:
    assert release.problems(ready) == []


@pytest.mark.parametrize(
    ("name", "old", "new", "sentence"),
    [
        (
            "CHANGELOG.md",
            "## Unreleased\n",
            "## Unreleased\n\n- New.\n",
            "CHANGELOG.md has entries under Unreleased; move ",
        ),
        ("CHANGELOG.md", "## 0.2.0 (2026-12-01)", "## 0.2.0", "must be '## 0.2.0 (YYYY-MM-DD)', got '## 0.2.0'"),
        ("CHANGELOG.md", "## 0.2.0 (2026-12-01)\n\n- Something.\n\n", "", "got '## 0.1.0 (2026-01-01)'"),
        ("CITATION.cff", "version: 0.2.0", "version: 0.1.0", "CITATION.cff must have 'version: 0.2.0', got 0.1.0"),
        ("CITATION.cff", 'date-released: "2026-12-01"\n', "", "must have 'date-released: 2026-12-01', got none"),
        ("CITATION.cff", "2026-12-01", "2026-12-02", "must have 'date-released: 2026-12-01', got 2026-12-02"),
    ],
)
def test_what_is_not_ready_is_named(name: str, old: str, new: str, sentence: str, ready: Path) -> None:
    changed(ready, name, old, new)
    (problem,) = release.problems(ready)
    assert sentence in problem


def test_a_version_that_is_nowhere_else_is_named_in_each_place(ready: Path) -> None:
    changed(ready, "src/grokscope/version.py", "0.2.0", "0.3.0")
    assert [problem.split()[-1] for problem in release.problems(ready)] == ["(2026-12-01)'", "0.2.0"]


def test_a_tree_with_changes_and_a_tag_that_is_taken_are_named(ready: Path) -> None:
    (ready / "new.py").write_text("")
    (ready / "other.py").write_text("")
    git(ready, "tag", "v0.2.0")
    assert release.problems(ready) == [
        "the tree is not clean: ?? new.py and 1 more",
        "there is a tag v0.2.0 already; set another version in src/grokscope/version.py",
    ]


def test_nothing_is_built_of_what_is_not_ready(ready: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (ready / "new.py").write_text("")
    assert release.main(ready) == 2
    assert capsys.readouterr().err == "this is no release yet:\n- the tree is not clean: ?? new.py\n"
    assert not (ready / "dist").exists()


def test_what_is_ready_is_built_and_not_uploaded(
    ready: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    def write(root: Path, out: Path) -> list[Path]:
        out.mkdir()
        (out / "grokscope-0.2.0.tar.gz").write_bytes(b"")
        return [*out.iterdir()]

    monkeypatch.setattr(release, "build", write)
    assert release.main(ready) == 0
    printed = capsys.readouterr().out.splitlines()
    assert [line.split()[-1] for line in printed] == ["dist/grokscope-0.2.0.tar.gz", "v0.2.0"]
    assert printed[-1].startswith("nothing was uploaded")
