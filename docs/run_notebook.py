"""Executes examples/first_look.ipynb from top to bottom and stores it with its outputs.

`python docs/run_notebook.py` does it in place; runs are trained in a folder that is removed afterwards.
"""

import sys
from pathlib import Path
from tempfile import TemporaryDirectory

import nbformat
from nbclient import NotebookClient

NOTEBOOK = Path(__file__).parents[1] / "examples" / "first_look.ipynb"


def executed(notebook: nbformat.NotebookNode, folder: Path) -> nbformat.NotebookNode:
    """The notebook as it stands after running every cell in a folder; an error in a cell is raised."""
    for cell in notebook.cells:
        cell.metadata = {}
    client = NotebookClient(notebook, timeout=600, kernel_name="python3", record_timing=False)
    client.execute(cwd=str(folder))
    # Versions of the machine that ran it are not part of the notebook.
    notebook.metadata = {
        "kernelspec": {"display_name": "Python 3", "language": "python", "name": "python3"},
        "language_info": {"name": "python"},
    }
    return notebook


def main(path: Path = NOTEBOOK) -> None:
    """Execute the file in place."""
    with TemporaryDirectory() as folder:
        notebook = executed(nbformat.read(path, as_version=4), Path(folder))
    nbformat.validate(notebook)
    nbformat.write(notebook, path)


if __name__ == "__main__":
    main(*map(Path, sys.argv[1:]))
