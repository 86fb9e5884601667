import os
import shutil
import signal
import subprocess
from collections.abc import Iterator
from pathlib import Path

# Before numpy and torch are imported: two workers on two cores must not ask for four threads.
os.environ.setdefault("OMP_NUM_THREADS", "1")
# Before Triton is imported: without a device its kernels are interpreted.
if not Path("/dev/nvidiactl").exists():
    os.environ.setdefault("TRITON_INTERPRET", "1")

import pytest
from hypothesis import settings

# A slow or busy machine is no defect of the code; pytest's own timeout catches what hangs.
settings.register_profile("grokscope", deadline=None)
settings.load_profile("grokscope")


@pytest.fixture(scope="module")
def recorded(tmp_path_factory: pytest.TempPathFactory):
    """A store of small runs that were measured while they were trained; see `recorded_runs`."""
    from recorded_runs import train_recorded

    return train_recorded(tmp_path_factory.mktemp("recorded"))


@pytest.fixture(scope="module")
def quick_disk() -> Iterator[None]:
    """For tests that do not end the power supply; `test_store` sees to what has to reach the disk."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(os, "fsync", lambda descriptor: None)
        yield


@pytest.fixture
def small_disk(tmp_path: Path) -> Iterator[Path]:
    """A file system of its own, of one MiB."""
    place = tmp_path / "disk"
    place.mkdir()
    command = ["mount", "-t", "tmpfs", "-o", "size=1m", "tmpfs", str(place)]
    if shutil.which("mount") is None or subprocess.run(command, capture_output=True, check=False).returncode:
        pytest.skip("mounting a small file system is not permitted here")
    try:
        yield place
    finally:
        subprocess.run(["umount", "--lazy", str(place)], check=True)


@pytest.fixture
def as_before() -> Iterator[None]:
    """A worker listens to signals and takes one thread: both are put back."""
    import torch

    numbers = (signal.SIGTERM, signal.SIGINT, signal.SIGUSR1, signal.SIGUSR2)
    handlers, threads = [signal.getsignal(number) for number in numbers], torch.get_num_threads()
    yield
    for number, handler in zip(numbers, handlers, strict=True):
        signal.signal(number, handler)
    torch.set_num_threads(threads)
