"""Real refusals by the system: no space, a read-only store, a limit on the size of files."""

import resource
import shutil
import subprocess
from pathlib import Path

import pytest

from grokscope.jobs import run_all
from grokscope.jobs.worker import BAD_INPUT, main
from grokscope.runs import RunFolder, Store, run_name
from grokscope.specs import Architecture, Cadence, Plan, RunSpec, Training

pytestmark = pytest.mark.usefixtures("as_before")

SPEC = RunSpec(
    task="add_mod7",
    train_fraction=0.7,
    architecture=Architecture(layers=1, width=16, heads=2, mlp_width=32),
    training=Training(steps=12, batch_size=16),
    checkpoints=Cadence(every=2),
    measurements=Cadence(every=2),
)


@pytest.fixture(scope="module")
def expected(tmp_path_factory: pytest.TempPathFactory) -> dict[str, bytes]:
    store = Store(tmp_path_factory.mktemp("straight"))
    run_all([SPEC], store, compiled=False)
    return contents(store.find(run_name(SPEC)))


def contents(folder: RunFolder) -> dict[str, bytes]:
    return {path.name: path.read_bytes() for path in folder.path.iterdir()}


def work(store: Path, folder: Path) -> int:
    path = folder / "plan.json"
    path.write_text(Plan(str(store), (SPEC,)).to_json())
    return main(["--spec", str(path)])


def the_sentence(capsys: pytest.CaptureFixture[str]) -> str:
    error = capsys.readouterr().err
    assert error.startswith("grokscope: ")
    assert error.count("\n") == 1
    assert "Traceback" not in error
    return error


def check_last_checkpoint(store: Path) -> int:
    folder = Store(store).find(run_name(SPEC))
    found = folder.latest_state()
    assert found is not None
    step, tensors = found
    assert int(tensors["step"]) == step
    assert not folder.outcome.is_finished
    return step


@pytest.mark.parametrize("left", [0, 30_000, 90_000, 150_000])
def test_a_full_disk_is_reported_and_training_goes_on_when_space_returns(
    left: int, small_disk: Path, tmp_path: Path, expected: dict[str, bytes], capsys: pytest.CaptureFixture[str]
) -> None:
    store, ballast = small_disk / "runs", small_disk / "ballast"
    (store / run_name(SPEC)).mkdir(parents=True)
    with ballast.open("wb") as file:
        file.write(bytes(shutil.disk_usage(small_disk).free - left))
    assert work(store, tmp_path) == BAD_INPUT
    sentence = the_sentence(capsys)
    assert f"'{store}/" in sentence
    assert "could not be written: No space left on device; " in sentence
    assert " bytes are free there" in sentence
    assert not list(store.rglob("*.partial"))
    if left > 80_000:
        assert check_last_checkpoint(store) >= 0
    ballast.unlink()
    assert work(store, tmp_path) == 0
    assert contents(Store(store).find(run_name(SPEC))) == expected


def test_a_read_only_store_is_reported(small_disk: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    Store(small_disk / "runs").add(SPEC)
    subprocess.run(["mount", "-o", "remount,ro", str(small_disk)], check=True)
    assert work(small_disk / "runs", tmp_path) == BAD_INPUT
    assert "Read-only file system" in the_sentence(capsys)
    assert work(small_disk / "others", tmp_path) == BAD_INPUT
    assert "could not be created: Read-only file system" in the_sentence(capsys)


def test_a_limit_on_the_size_of_files_is_reported(
    tmp_path: Path, expected: dict[str, bytes], capsys: pytest.CaptureFixture[str]
) -> None:
    store = tmp_path / "runs"
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    size = len(expected["state-00000012.safetensors"])
    resource.setrlimit(resource.RLIMIT_FSIZE, (size - 1, hard))
    try:
        status = work(store, tmp_path)
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))
    assert status == BAD_INPUT
    sentence = the_sentence(capsys)
    assert "state-00000000.safetensors' could not be written: File too large; " in sentence
    assert not list(store.rglob("*.partial"))
    assert work(store, tmp_path) == 0
    assert contents(Store(store).find(run_name(SPEC))) == expected
