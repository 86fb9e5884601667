"""Tables as CSV, Markdown and LaTeX; the same table gives the same bytes."""

import csv
import io
import re
import unicodedata
from collections.abc import Callable, Iterable, Mapping
from math import isinf
from pathlib import Path

from grokscope.files import make_folder, write_atomically
from grokscope.view.numbers import format_number
from grokscope.view.table import Cell, Column, Table, Value

__all__ = [
    "cell_text",
    "csv_lines",
    "csv_of",
    "csv_text",
    "csv_value",
    "latex_of",
    "markdown_of",
    "markdown_text",
    "read_aloud",
    "write_files",
    "write_table",
]

FORMULA = tuple("=+-@\t\r")  # how a text begins that a spreadsheet would compute
MARKDOWN = re.compile(r"([\\`*_{}\[\]()#|~$!])")
SMALL = 4  # digits from which on a number that would be shown as 0 is shown as smaller than that
NARROW = 8  # columns that fit a page in a usual size
HTML = {"&": "&amp;", "<": "&lt;", ">": "&gt;"}
LATEX = {
    "\\": r"\textbackslash{}",
    "{": r"\{",
    "}": r"\}",
    "$": r"\$",
    "&": r"\&",
    "#": r"\#",
    "%": r"\%",
    "_": r"\_",
    "~": r"\textasciitilde{}",
    "^": r"\textasciicircum{}",
    "<": r"\textless{}",
    ">": r"\textgreater{}",
    "|": r"\textbar{}",
    '"': "''",
    "[": "{[}",  # after a line's end a bracket would be its option
    "]": "{]}",
    "*": "{*}",
    "`": r"\textasciigrave{}",
    "'": r"\textquotesingle{}",
    "-": "{-}",  # two together would be a dash
    "α": r"$\alpha$",
    "β": r"$\beta$",
    "λ": r"$\lambda$",
    "Δ": r"$\Delta$",
    "²": r"$^2$",
    "₂": r"$_2$",
    "⌊": r"$\lfloor$",
    "⌋": r"$\rfloor$",
    "·": r"$\cdot$",
    "≤": r"$\le$",
    "≥": r"$\ge$",
    "×": r"$\times$",
    "−": "$-$",
    "±": r"$\pm$",
    "∞": r"$\infty$",
    "†": r"\dag{}",
    "‡": r"\ddag{}",
    "–": "--",
    "—": "---",
    "…": r"\ldots{}",
    "‖": r"$\|$",
    "§": r"\S{}",
    "’": "'",
}


def csv_of(table: Table) -> bytes:
    """A line for each row; intervals, numbers of runs and the paper's values in columns of their own.

    Numbers are plain, so that they parse back. A text that a spreadsheet would compute begins with an apostrophe.
    """
    parts = [(place, name, read) for place in range(len(table.columns)) for name, read in _parts(table, place)]
    heads = [csv_text(f"{table.columns[place].name}{name}") for place, name, _ in parts]
    return csv_lines([heads, *([csv_value(read(row[place])) for place, _, read in parts] for row in table.rows)])


def csv_lines(rows: Iterable[Iterable[object]]) -> bytes:
    """Rows of values as the lines of a CSV file."""
    file = io.StringIO(newline="")
    csv.writer(file, lineterminator="\n").writerows(rows)
    return file.getvalue().encode()


def _parts(table: Table, place: int) -> list[tuple[str, Callable[[Cell], Value]]]:
    """What a column of the table is in CSV: ours, and what else any of its cells has."""
    parts: dict[str, Callable[[Cell], Value]] = {
        "": lambda cell: cell.ours,
        " low": lambda cell: cell.interval[0] if cell.interval else None,
        " high": lambda cell: cell.interval[1] if cell.interval else None,
        " n": lambda cell: cell.n,
        " (paper)": lambda cell: cell.paper,
        " low (paper)": lambda cell: cell.paper_interval[0] if cell.paper_interval else None,
        " high (paper)": lambda cell: cell.paper_interval[1] if cell.paper_interval else None,
    }
    cells = [row[place] for row in table.rows]
    return [(name, read) for name, read in parts.items() if not name or any(read(cell) is not None for cell in cells)]


def csv_value(value: Value) -> str:
    """A value as CSV: numbers plain, so that they parse back."""
    if value is None:
        return ""
    return csv_text(value) if isinstance(value, str) else f"{value:.10g}"


def csv_text(text: str) -> str:
    """A text on one line that no spreadsheet computes."""
    plain = _one_line(text)
    return f"'{plain}" if plain.startswith(FORMULA) else plain


def markdown_of(table: Table) -> bytes:
    """A heading, the table with the paper's values in columns beside ours, and the notes."""
    heads, body = _laid_out(table, markdown_text)
    lines = [f"### {markdown_text(table.title)} ({markdown_text(table.label)})", ""]
    lines += [_markdown_line(heads), _markdown_line(["---"] * len(heads)), *map(_markdown_line, body), ""]
    lines += [f"- {markdown_text(note)}" for note in table.notes]
    return ("\n".join(lines).rstrip("\n") + "\n").encode()


def _markdown_line(cells: list[str]) -> str:
    return f"| {' | '.join(cells)} |"


def markdown_text(text: str) -> str:
    """A text that Markdown shows as it is."""
    plain = "".join(HTML.get(letter, letter) for letter in _one_line(text))
    return MARKDOWN.sub(r"\\\1", plain)


def latex_of(table: Table) -> bytes:
    """A floating table for `booktabs` (and `textcomp`, which LaTeX has since 2020); every other letter is ASCII."""
    heads, body = _laid_out(table, _latex_text)
    lines = [
        r"\begin{table}[h]",
        r"\centering",
        rf"\caption{{{_latex_text(table.title)}}}",
        rf"\label{{{re.sub(r'[^A-Za-z0-9:_.-]', '', table.label)}}}",
        r"\small" if len(heads) <= NARROW else r"\tiny",
        rf"\begin{{tabular}}{{@{{}}{'l' * len(heads)}@{{}}}}",
        r"\toprule",
        _latex_line(heads),
        r"\midrule",
        *map(_latex_line, body),
        r"\bottomrule",
        r"\end{tabular}",
        *(rf"\par\smallskip\footnotesize {_latex_text(note)}" for note in table.notes),
        r"\end{table}",
    ]
    return ("\n".join(lines) + "\n").encode()


def _latex_line(cells: list[str]) -> str:
    return rf"{' & '.join(cells)} \\"


def _latex_text(text: str) -> str:
    return "".join(_latex_letter(letter) for letter in _one_line(text))


def _latex_letter(letter: str) -> str:
    """A letter that any engine can set; one without a name here is written by its number."""
    return LATEX.get(letter) or (letter if letter.isascii() else rf"\texttt{{U+{ord(letter):04X}}}")


def read_aloud(table: Table) -> tuple[list[str], list[list[str]]]:
    """Headings and rows as a terminal shows them."""
    return _laid_out(table, _one_line)


def _laid_out(table: Table, escaped: Callable[[str], str]) -> tuple[list[str], list[list[str]]]:
    """Headings and rows for a reader: ours, and the paper's in a column beside it where it has any."""
    has_paper = [any(row[place].paper is not None for row in table.rows) for place in range(len(table.columns))]
    names = [
        name
        for column, beside in zip(table.columns, has_paper, strict=True)
        for name in (column.name, f"{column.name}, paper")[: 1 + beside]
    ]
    body = [
        [
            escaped(text)
            for cell, column, beside in zip(row, table.columns, has_paper, strict=True)
            for text in (cell_text(cell, column), _bounded(cell.paper, cell.paper_interval, column))[: 1 + beside]
        ]
        for row in table.rows
    ]
    return [*map(escaped, names)], body


def cell_text(cell: Cell, column: Column) -> str:
    """A cell for a reader, as its column writes numbers: 0.97 [0.84, 1.00], n = 32."""
    shown = _bounded(cell.ours, cell.interval, column)
    return f"{shown}, n = {cell.n}" if cell.n is not None and shown else shown


def _bounded(value: Value, interval: tuple[float | int, float | int] | None, column: Column) -> str:
    """A value with its interval, where it has one."""
    ends = f" [{_shown(interval[0], column)}, {_shown(interval[1], column)}]" if interval else ""
    return _shown(value, column) + ends


def _shown(value: Value, column: Column) -> str:
    """A number as its column writes it."""
    if value is None or isinstance(value, str):
        return value or ""
    if isinf(value):
        return "−∞" if value < 0 else "+∞" if column.signed else "∞"
    if column.digits >= SMALL and 0 < value < 0.5 * 10**-column.digits:  # a p-value is never 0
        return f"<{0.5 * 10**-column.digits:.{column.digits + 1}f}"
    return format_number(value, column.digits, signed=column.signed)


def _one_line(text: str) -> str:
    """Without line breaks and control characters, which end a row in every format, and without lone surrogates."""
    return " ".join("".join(" " if unicodedata.category(c) in {"Cc", "Zl", "Zp", "Cs"} else c for c in text).split())


def write_table(table: Table, folder: Path) -> tuple[Path, ...]:
    """Write `<name>.csv`, `.md` and `.tex` into a folder, each whole or not at all; their paths."""
    return write_files(folder, table.name, {"csv": csv_of(table), "md": markdown_of(table), "tex": latex_of(table)})


def write_files(folder: Path, name: str, contents: Mapping[str, bytes]) -> tuple[Path, ...]:
    """Write `<name>.<ending>` into a folder for each ending; their paths. No name leaves the folder."""
    make_folder(folder)
    stem = re.sub(r"[^A-Za-z0-9_-]", "-", name) or "unnamed"
    paths = {ending: folder / f"{stem}.{ending}" for ending in contents}
    for ending, path in paths.items():
        write_atomically(path, contents[ending])
    return tuple(paths.values())
