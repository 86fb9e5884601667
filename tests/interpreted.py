"""Tests of kernels without a device, by Triton's slow interpreter: most of their kinds are among the slow tests."""

from collections.abc import Iterable
from typing import Any

import pytest
import torch


def kinds(names: Iterable[str], fast: Iterable[str]) -> list[Any]:
    """All names as parameters; on a CPU those that are not `fast` are run by `make slow` alone."""
    always, named = {*fast}, [*names]
    assert always <= {*named}, "a fast kind that is not there"
    is_slow = not torch.cuda.is_available()
    return [
        pytest.param(name, id=name, marks=pytest.mark.slow if is_slow and name not in always else ()) for name in named
    ]
