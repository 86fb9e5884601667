"""Lines with checksums, and rows as columns."""

import math

from hypothesis import given
from hypothesis import strategies as st

from grokscope.runs.logs import columns_from, decode_rows, encode_row

NUMBERS = st.none() | st.integers(-(2**53), 2**53) | st.floats(allow_nan=False, allow_infinity=False)
ROWS = st.lists(st.dictionaries(st.text(max_size=8), NUMBERS | st.text(max_size=8), max_size=4), max_size=6)


@given(ROWS)
def test_decoding_gives_back_what_was_encoded(rows: list[dict[str, object]]) -> None:
    assert decode_rows(b"".join(map(encode_row, rows))) == (rows, 0)


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
