import os
import subprocess
import sys
from pathlib import Path

import pytest

from grokscope.training.cohort import OLDEST_TRITON

pytest.importorskip("triton", OLDEST_TRITON, "Triton comes with torch's CUDA builds; on a CPU: pip install triton")


def compiled(cache: Path, *words: str) -> str:
    environment = {**os.environ, "TRITON_INTERPRET": "0", "TRITON_CACHE_DIR": str(cache)}
    script = Path(__file__).with_name("compile_for_cuda.py")
    done = subprocess.run(
        [sys.executable, str(script), *words], env=environment, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr[-3000:]
    return done.stdout


@pytest.mark.parametrize("precision", ["bf16", pytest.param("float32", marks=pytest.mark.slow)])
def test_every_kernel_compiles_for_cuda(precision: str, tmp_path: Path) -> None:
    assert int(compiled(tmp_path, precision).split()[0]) > 20


@pytest.mark.parametrize("tasks", ["pairs", pytest.param("all", marks=pytest.mark.slow)])
def test_no_kernel_adds_up_in_another_order_in_another_stack(tasks: str, tmp_path: Path) -> None:
    assert compiled(tmp_path, "stacks", tasks) == "stacks of 1, 2 and 16 compared\n"
