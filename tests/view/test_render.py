"""Tables as CSV, Markdown and LaTeX: they parse back, whatever the strings in them."""

import csv
import io
import re
from pathlib import Path

import pytest
from grokscope.studies.tables import TABLES, Cell, Column, Table
from hypothesis import given, settings
from hypothesis import strategies as st

from grokscope.studies import evidence_of
from grokscope.view.render import cell_text, csv_of, latex_of, markdown_of, write_table

few = settings(max_examples=50, deadline=None)
EMPTY = evidence_of([])
HOSTILE = '\\input{/etc/passwd} | <script> & 50% #1 $x_1^2$ ~ `a` [b](c)\n\\\\ "q" \x00 \u2028 ∮ *'


def table(name: str = "add_mod97_s42", note: str = "A note.") -> Table:
    columns = (Column("Experiment"), Column("Lead", signed=True), Column("R²", digits=2))
    rows = (
        (Cell(name), Cell(-1500.25, 2500, (-2000.0, float("inf")), 9, (1111, 2333)), Cell(0.8149, "never")),
        (Cell("empty"), Cell(), Cell("never")),
    )
    return Table("tab-x", "tab:x", name, columns, rows, (note,))


def csv_rows(made: Table) -> list[dict[str, str]]:
    return list(csv.DictReader(io.StringIO(csv_of(made).decode(), newline="")))


def markdown_cells(line: str) -> list[str]:
    """Split at the bars that no backslash escapes."""
    return re.split(r"(?<!\\)(?:\\\\)*\|", line)[1:-1]


def test_csv_parses_back_to_the_numbers() -> None:
    first, second = csv_rows(table())
    assert first["Experiment"] == "add_mod97_s42"
    assert float(first["Lead"]) == -1500.25
    assert (float(first["Lead low"]), float(first["Lead high"])) == (-2000, float("inf"))
    assert (first["Lead n"], first["Lead (paper)"], first["Lead low (paper)"]) == ("9", "2500", "1111")
    assert float(first["R²"]) == 0.8149
    assert first["R² (paper)"] == "never"
    assert (second["Lead"], second["Lead low"], second["R²"]) == ("", "", "never")


def test_markdown_and_latex_say_the_numbers_as_their_column_does() -> None:
    text = markdown_of(table()).decode()
    assert r"| add\_mod97\_s42 | −1,500 \[−2,000, +∞\], n = 9 | +2,500 \[+1,111, +2,333\] | 0.81 | never |" in text
    assert r"add\_mod97\_s42 & $-$1,500 {[}$-$2,000, +$\infty${]}, n = 9 & +2,500" in latex_of(table()).decode()


@pytest.mark.parametrize("name", TABLES)
def test_every_table_renders_without_runs(name: str) -> None:
    made = TABLES[name](EMPTY)
    assert len(csv_rows(made)) == len(made.rows)
    lines = [line for line in markdown_of(made).decode().splitlines() if line.startswith("|")]
    assert len(lines) == len(made.rows) + 2
    assert len({len(markdown_cells(line)) for line in lines}) == 1
    assert_sound(latex_of(made).decode(), len(made.rows))


def assert_sound(source: str, rows: int) -> None:
    """ASCII, balanced, with as many columns in every row as are declared."""
    assert source.isascii()
    bare = re.sub(r"\\[{}&%$#_\\]", "", source)
    assert bare.count("{") == bare.count("}")
    assert bare.count("$") % 2 == 0
    assert not re.search(r"[#%~]", bare)
    body = source.split("\\toprule\n")[1].split("\\bottomrule")[0].splitlines()
    lines = [line for line in body if line != r"\midrule"]
    declared = re.search(r"\\begin\{tabular\}\{@\{\}(l+)@\{\}\}", source)
    assert declared is not None
    assert len(lines) == rows + 1
    assert {len(re.findall(r"(?<!\\)&", line)) + 1 for line in lines} == {len(declared[1])}
    assert all(line.endswith(r" \\") for line in lines)


@few
@given(st.text(st.characters(codec="utf-8"), max_size=30).map(lambda text: text + HOSTILE) | st.text(max_size=30))
def test_no_string_breaks_a_format(name: str) -> None:
    made = table(name, note=name)
    assert len(csv_rows(made)) == 2
    lines = [line for line in markdown_of(made).decode().splitlines() if line.startswith("| ")]
    assert [len(markdown_cells(line)) for line in lines] == [5] * 4
    assert_sound(latex_of(made).decode(), 2)


def test_commands_and_tags_are_text() -> None:
    source, text = latex_of(table(HOSTILE)).decode(), markdown_of(table(HOSTILE)).decode()
    assert r"\textbackslash{}input\{/etc/passwd\}" in source
    assert r"\input" not in source
    assert r"50\% \#1 \$x\_1\textasciicircum{}2\$" in source
    assert r"\texttt{U+222E}" in source
    assert "<script>" not in text
    assert r"&lt;script&gt; &amp; 50% \#1" in text


@pytest.mark.parametrize("name", ["=1+1", "+1", "-1", "@x", "\t=1", "  =1"])
def test_a_text_that_a_spreadsheet_would_compute_stays_text(name: str) -> None:
    assert csv_rows(table(name))[0]["Experiment"] == f"'{name.strip()}"


def test_files_are_written_whole_and_are_the_same_again(tmp_path: Path) -> None:
    made = [write_table(TABLES["tab-cross"](EMPTY), tmp_path / part) for part in ("one", "two")]
    assert [path.name for path in made[0]] == ["tab-cross.csv", "tab-cross.md", "tab-cross.tex"]
    for one, other in zip(*made, strict=True):
        assert one.read_bytes() == other.read_bytes() != b""
    assert sorted(path.name for path in (tmp_path / "one").iterdir()) == [path.name for path in made[0]]


def test_a_name_cannot_leave_its_folder(tmp_path: Path) -> None:
    made = Table("../../x", "tab:}x{", "t", (Column("a"),), ((Cell(1),),))
    assert {path.parent for path in write_table(made, tmp_path)} == {tmp_path}
    assert r"\label{tab:x}" in latex_of(made).decode()


def test_a_p_value_is_never_shown_as_nothing() -> None:
    column = Column("p", digits=4)
    assert [cell_text(Cell(p), column) for p in (7e-18, 0.00006, 0.0, 1.0)] == [
        "<0.00005",
        "0.0001",
        "0.0000",
        "1.0000",
    ]
    assert cell_text(Cell(0.004), Column("share", digits=2)) == "0.00"
