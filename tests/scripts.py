"""Scripts outside the package, loaded as modules."""

import importlib.util
from pathlib import Path
from types import ModuleType

__all__ = ["DOCS", "module_at"]

DOCS = Path(__file__).parents[1] / "docs"


def module_at(path: Path) -> ModuleType:
    """The script at this place, imported."""
    spec = importlib.util.spec_from_file_location(path.stem, path)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module
