"""Wheel and sdist, built and installed where the repository is not."""

import os
import re
import subprocess
import sys
import tarfile
import tomllib
import venv
import zipfile
from pathlib import Path

import pytest

import grokscope
from scripts import module_at

ROOT = Path(__file__).parents[1]
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
ELSEWHERE = {name: value for name, value in os.environ.items() if name not in ("PYTHONPATH", "MYPYPATH")}
release = module_at(ROOT / "packaging" / "release.py")


def named(requirements: list[str]) -> dict[str, str]:
    """What follows each requirement's name."""
    return dict(re.match(r"([\w-]+)(.*)", one).groups() for one in requirements)  # type: ignore[union-attr, misc]


def test_the_extra_all_is_every_extra_that_a_user_needs() -> None:
    extras = PROJECT["optional-dependencies"]
    (everything,) = extras["all"]
    wanted = re.fullmatch(r"grokscope\[(.*)\]", everything)
    assert wanted is not None
    assert set(wanted[1].split(",")) == extras.keys() - {"all", "dev", "docs", "faults"}


def test_what_several_extras_need_has_one_oldest_version() -> None:
    lists = [PROJECT["dependencies"], *PROJECT["optional-dependencies"].values()]
    versions: dict[str, set[str]] = {}
    for requirements in lists:
        for name, version in named(requirements).items():
            versions.setdefault(name, set()).add(version)
    assert {name: found for name, found in versions.items() if len(found) > 1 and name != "grokscope"} == {}


def test_whatever_is_needed_has_an_oldest_version_that_can_be_tested() -> None:
    found = named(PROJECT["dependencies"])
    assert {"torch", "numpy", "scipy"} < found.keys()
    assert [version for version in found.values() if not re.fullmatch(r">=\d[\d.]*", version)] == []


def test_every_python_that_is_declared_is_a_classifier() -> None:
    versions = [one.rpartition(" ")[2] for one in PROJECT["classifiers"] if re.search(r":: 3\.\d+$", one)]
    assert PROJECT["requires-python"] == f">={versions[0]}"
    assert versions == [f"3.{minor}" for minor in range(11, 11 + len(versions))]


@pytest.fixture(scope="module")
def built(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    """The sdist and the wheel made of it, by their endings."""
    pytest.importorskip("build")
    return {path.suffix: path for path in release.build(ROOT, tmp_path_factory.mktemp("dist") / "out")}


@pytest.fixture(scope="module")
def installed(built: dict[str, Path], tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The `bin` of an environment that holds the wheel and what it declares, and nothing else."""
    place = tmp_path_factory.mktemp("environment")
    venv.create(place, with_pip=True)
    constraints = ["--constraint", str(ROOT / "constraints.txt")]
    command = [str(place / "bin" / "python"), "-m", "pip", "install", "--quiet", *constraints, str(built[".whl"])]
    subprocess.run(command, check=True, cwd=place, env=ELSEWHERE)
    return place / "bin"


def ran(*command: str, at: Path) -> str:
    """What a command prints far from the repository."""
    done = subprocess.run([*command], capture_output=True, text=True, check=False, cwd=at, env=ELSEWHERE)
    assert done.returncode == 0, done.stderr
    return done.stdout


@pytest.mark.slow
def test_the_wheel_holds_every_source_its_data_and_the_types(built: dict[str, Path]) -> None:
    inside = set(zipfile.ZipFile(built[".whl"]).namelist())
    files = (path for path in (ROOT / "src/grokscope").rglob("*") if path.is_file())
    expected = {str(path.relative_to(ROOT / "src")) for path in files if path.suffix != ".pyc"}
    assert {
        f"grokscope/{one}" for one in ("py.typed", "forecast/fitted/tier-5.json", "studies/verdicts.json")
    } <= expected
    assert expected == {name for name in inside if ".dist-info/" not in name}
    assert any(name.endswith("licenses/LICENSE") for name in inside)


@pytest.mark.slow
def test_the_sdist_holds_what_the_wheel_is_built_of(built: dict[str, Path]) -> None:
    with tarfile.open(built[".gz"]) as archive:
        inside = {name.partition("/")[2] for name in archive.getnames()}
    assert {"CHANGELOG.md", "CITATION.cff", "LICENSE", "README.md", "pyproject.toml"} <= inside
    assert not [name for name in inside if name.startswith(("tests", "results", "docs"))]


@pytest.mark.slow
@pytest.mark.timeout(1200)
def test_the_wheel_works_where_the_repository_is_not(installed: Path, tmp_path: Path) -> None:
    python = str(installed / "python")
    light = "import sys, grokscope; print(grokscope.__version__, 'torch' in sys.modules, grokscope.__file__)"
    version, loads_torch, file = ran(python, "-c", light, at=tmp_path).split()
    assert (version, loads_torch) == (grokscope.__version__, "False")
    assert Path(file).is_relative_to(installed.parent)
    assert "grokscope train add_mod97" in ran(str(installed / "grokscope"), "--help", at=tmp_path)
    train = ["train", "add_mod7", "--seeds", "0", "--steps", "20", "--out", "runs"]
    ran(str(installed / "grokscope"), *train, at=tmp_path)
    shown = ran(python, "-c", "import grokscope; print(grokscope.open('runs')[0])", at=tmp_path)
    assert re.fullmatch(r"<run add_mod7_s0-[0-9a-f]{16}: λ = 1, 20 steps, .*>\n", shown)


@pytest.mark.slow
@pytest.mark.timeout(1200)
def test_a_type_checker_reads_the_types_of_the_wheel(installed: Path, tmp_path: Path) -> None:
    pytest.importorskip("mypy")
    (tmp_path / "mine.py").write_text(
        "import grokscope\n"
        "runs = grokscope.open('runs').where(weight_decay=2)\n"
        "reveal_type(runs)\n"
        "reveal_type(runs[0])\n"
        "reveal_type(runs[:2])\n"
        "reveal_type(runs[0].spec.training.weight_decay)\n"
        "reveal_type(grokscope.Monitor)\n"
        "runs[0].plto()\n"
    )
    command = [sys.executable, "-m", "mypy", "--strict", "--python-executable", str(installed / "python")]
    command += ["--cache-dir", str(tmp_path / "cache"), "--follow-imports", "silent", "mine.py"]
    done = subprocess.run(command, capture_output=True, text=True, check=False, cwd=tmp_path, env=ELSEWHERE)
    revealed = re.findall(r'Revealed type is "(.*)"', done.stdout)
    opened = "grokscope.view.opened.Opened"
    assert revealed[:4] == [f"{opened}Runs", f"{opened}Run", f"{opened}Runs", "float | None"], done.stdout
    assert "grokscope.attach.monitor.Monitor" in revealed[4]
    assert re.findall(r"mine.py:(\d+): error: (.*)  \[", done.stdout) == [("8", '"OpenedRun" has no attribute "plto"')]
