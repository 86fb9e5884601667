import os
import subprocess
import sys
from pathlib import Path

import pytest

from grokscope.training.cohort import OLDEST_TRITON

pytest.importorskip("triton", OLDEST_TRITON, "Triton comes with torch's CUDA builds; on a CPU: pip install triton")


def test_every_kernel_compiles_for_cuda(tmp_path: Path) -> None:
    environment = {**os.environ, "TRITON_INTERPRET": "0", "TRITON_CACHE_DIR": str(tmp_path)}
    script = Path(__file__).with_name("compile_for_cuda.py")
    done = subprocess.run(
        [sys.executable, str(script), "float32", "bf16"], env=environment, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr[-3000:]
    assert int(done.stdout.split()[0]) > 40
