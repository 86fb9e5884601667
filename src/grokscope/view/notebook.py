"""Runs as a notebook shows them: the report inside the notebook itself, which needs no kernel to be read again."""

from html import escape

from grokscope.errors import InputError, for_shell, plural
from grokscope.runs import Runs
from grokscope.view import require_module

__all__ = ["notebook_html"]

MOST_RUNS = 500
COLUMNS_BUDGET = 1_000_000  # characters of all curves: a notebook keeps them once for every cell that shows runs
LARGEST = 3_000_000  # characters of the whole
HEIGHT = 720  # pixels, until somebody drags the corner
STYLE = f"width: 100%; height: {HEIGHT}px; border: 0; resize: vertical; overflow: auto"


def notebook_html(runs: Runs) -> str:
    """The report of some runs in a frame that reaches nothing of the notebook; or a sentence that says why not."""
    try:
        return _frame(runs)
    except InputError as error:
        return f"<p>{escape(repr(runs))}: {escape(str(error))}</p>"


def _frame(runs: Runs) -> str:
    if not runs:
        raise InputError("there is nothing to show")
    if len(runs) > MOST_RUNS:
        raise InputError(_too_large(runs, f"{MOST_RUNS:,} runs"))
    require_module("jinja2", "report")
    from grokscope.view.page.embedded import embedded_data
    from grokscope.view.page.html import page_with
    from grokscope.view.page.sources import Source, read_runs

    shown, problems = read_runs(runs.store.path, runs.names)
    if not shown:
        raise InputError(problems[0])
    source = Source(runs.store.path.resolve().name, tuple(shown), problems=tuple(problems))
    page = escape(page_with(source.title, embedded_data(source, budget=COLUMNS_BUDGET)))
    if len(page) > LARGEST:
        raise InputError(_too_large(runs, f"{LARGEST / 1e6:g} MB"))
    # Without allow-same-origin, scripts inside have an origin of their own: nothing of the notebook is theirs.
    frame = f'<iframe title="{plural(len(shown), "run")}" sandbox="allow-scripts allow-downloads" style="{STYLE}"'
    return f'{frame} srcdoc="{page}"></iframe>' + "".join(f"<p>{escape(problem)}</p>" for problem in problems)


def _too_large(runs: Runs, most: str) -> str:
    folder = for_shell(runs.store.path)
    return f"a notebook shows at most {most}; choose some with runs.where(...), or use: grokscope report {folder}"
