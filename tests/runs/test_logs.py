"""Lines with checksums, and rows as columns."""

import math
import zlib

import pytest
from hypothesis import given
from hypothesis import strategies as st

from grokscope.runs.logs import columns_from, decode_rows, encode_row

NUMBERS = st.none() | st.integers(-(2**53), 2**53) | st.floats(allow_nan=False, allow_infinity=False)
NAMES = st.text(max_size=8).filter(lambda name: name.isprintable() and name != "step")
OTHERS = st.dictionaries(NAMES, NUMBERS | st.text(max_size=8), max_size=4)
ROWS = st.lists(st.builds(lambda step, row: {"step": step, **row}, st.integers(0, 2**53), OTHERS), max_size=6)


@given(ROWS)
def test_decoding_gives_back_what_was_encoded(rows: list[dict[str, object]]) -> None:
    assert decode_rows(b"".join(map(encode_row, rows))) == (rows, 0)
    assert decode_rows(b"".join(encode_row(row, "0123") for row in rows), "0123") == (rows, 0)


@given(ROWS)
def test_a_line_of_another_run_is_counted_and_left_out(rows: list[dict[str, object]]) -> None:
    lines = b"".join(encode_row(row, "0123") for row in rows)
    assert decode_rows(lines, "4567") == ([], len(rows))
    assert decode_rows(b"".join(map(encode_row, rows)), "4567") == (rows, 0), "those of earlier versions name no run"


@pytest.mark.parametrize(
    "text",
    [
        "[]",
        "3",
        "{}",
        '{"step":true}',
        '{"step":-1}',
        '{"step":1.0}',
        '{"step":9223372036854775808}',
        '{"step":1,"fsd":NaN}',
        '{"step":1,"fsd":1e999}',
        '{"step":1,"fsd":' + "9" * 400 + "}",
        '{"step":1,"fsd":' + "9" * 5000 + "}",
        '{"step":1,"fsd":[1]}',
        '{"step":1,"fsd":' + "[" * 100_000,
        '{"step":1,"\\u001b[31m":1}',
        '{"step":1,"' + "x" * 201 + '":1}',
    ],
    ids=lambda text: text[:30],
)
def test_a_line_with_a_checksum_that_is_no_evaluation_is_counted_and_left_out(text: str) -> None:
    assert decode_rows(f"{text}\t{zlib.crc32(text.encode()):08x}\n".encode()) == ([], 1)


@given(ROWS.filter(bool), st.data())
def test_a_line_that_is_torn_or_altered_is_counted_and_left_out(
    rows: list[dict[str, object]], data: st.DataObject
) -> None:
    lines = [encode_row(row) for row in rows]
    place = data.draw(st.integers(0, len(lines) - 1))
    cut = data.draw(st.integers(1, len(lines[place]) - 2))
    lines[place] = lines[place][:cut] + b"\n"
    whole, bad = decode_rows(b"".join(lines))
    assert (whole, bad) == (rows[:place] + rows[place + 1 :], 1)


def test_what_is_no_finite_number_is_null() -> None:
    row = {"step": 3, "nan": math.nan, "infinite": -math.inf}
    assert decode_rows(encode_row(row))[0] == [{"step": 3, "nan": None, "infinite": None}]


def test_columns_hold_numbers_in_the_order_of_rows() -> None:
    columns = columns_from([{"step": 0, "why": "text"}, {"step": 100, "fsd": 0.5, "why": None}])
    assert list(columns) == ["step", "fsd"]
    assert columns["step"] == [0, 100]
    assert math.isnan(columns["fsd"][0])
    assert columns_from([]) == {}
