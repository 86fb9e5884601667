"""What `grokscope.open` returns: stored runs that draw themselves, and that become frames and pages."""

from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, overload

from grokscope.errors import InputError, plural
from grokscope.files import named
from grokscope.runs import Run, Runs, Store, open_runs
from grokscope.runs.packed_files import has_records, import_command

if TYPE_CHECKING:
    import pandas
    import polars
    from matplotlib.figure import Figure

__all__ = ["OpenedRun", "OpenedRuns", "open_folder"]

NAMED = 3  # folders with runs that a sentence names


class OpenedRun(Run):
    """One stored run, with its plot."""

    def plot(self) -> "Figure":
        """Its accuracies, losses, FSD, Fourier rank and norm at every evaluation, as a matplotlib figure.

        `run.plot().savefig("run.pdf")` keeps it. Needs matplotlib: `pip install 'grokscope[report]'`.
        """
        from grokscope.view.charts.drawing import draw
        from grokscope.view.charts.files import png_of
        from grokscope.view.charts.run_chart import run_chart
        from grokscope.view.charts.style import house_style

        with house_style():
            drawn = draw(run_chart(self.name, self.record))
        # By itself IPython shows figures only once pyplot was imported.
        drawn._repr_png_ = lambda: png_of(drawn)  # type: ignore[attr-defined]
        return drawn


class OpenedRuns(Runs):
    """All runs of a folder, or some of them, with their frames and their page."""

    def __iter__(self) -> Iterator[OpenedRun]:
        return (OpenedRun(run.folder) for run in super().__iter__())

    @overload
    def __getitem__(self, key: slice) -> "OpenedRuns": ...
    @overload
    def __getitem__(self, key: str | int) -> OpenedRun: ...
    def __getitem__(self, key: str | int | slice) -> "OpenedRun | OpenedRuns":
        """As `Runs` does."""
        return super().__getitem__(key) if isinstance(key, slice) else OpenedRun(super().__getitem__(key).folder)

    def _repr_html_(self) -> str:
        """The report of these runs, inside a notebook."""
        from grokscope.view.notebook import notebook_html

        return notebook_html(self)

    def to_pandas(self) -> "pandas.DataFrame":
        """One row per run as a pandas frame: what it is, how it ended, and when it did what.

        Needs pandas: `pip install 'grokscope[frames]'`.
        """
        from grokscope.view.frames import pandas_frame

        return pandas_frame(self.columns())

    def to_polars(self) -> "polars.DataFrame":
        """The same as a polars frame."""
        from grokscope.view.frames import polars_frame

        return polars_frame(self.columns())


def open_folder(path: Path | str) -> OpenedRuns:
    """The runs stored in a folder; one without runs is rejected, and folders below it that have some are named.

    `runs = grokscope.open("runs/first")`, as one opens a data set.

    >>> from tempfile import TemporaryDirectory
    >>> from grokscope.specs import RunSpec
    >>> with TemporaryDirectory() as folder:
    ...     _ = Store(folder).add(RunSpec().with_seed(3))
    ...     open_folder(folder)[0].spec.seeds.split
    3
    """
    runs = OpenedRuns(open_runs(path).store.path)
    if not runs:
        if has_records(Path(path)):
            raise InputError(
                f"there are no runs in {named(Path(path))}, but packed records; make runs of them with: "
                f"{import_command(Path(path))}"
            )
        below = {one.name: len(Store(one).names()) for one in sorted(Path(path).iterdir()) if one.is_dir()}
        found = [f"{named(Path(path) / name)} has {plural(count, 'run')}" for name, count in below.items() if count]
        raise InputError(f"there are no runs in {named(Path(path))}{'; ' if found else ''}{', '.join(found[:NAMED])}")
    return runs
