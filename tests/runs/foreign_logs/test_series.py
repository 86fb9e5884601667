from hypothesis import given
from hypothesis import strategies as st

from grokscope.runs.foreign_logs.series import Series

ROWS = st.lists(st.tuples(st.integers(0, 200), st.floats(0, 1)), unique_by=lambda row: row[0], min_size=1)


@given(rows=ROWS, halvings=st.integers(0, 5), data=st.data())
def test_thinning_depends_on_no_order_and_moves_no_crossing(rows, halvings, data):
    def kept(rows):
        series = Series(levels=(0.5,))
        for number, (step, value) in enumerate(rows):
            series.add(step, value)
            if number == len(rows) // 2:
                for _ in range(halvings):
                    series.halve()
        for _ in range(halvings):
            series.halve()
        return series.points()

    found = kept(rows)
    assert found == kept(data.draw(st.permutations(rows)))
    assert found.items() <= dict(rows).items()
    assert min(found) == min(step for step, _ in rows)
    crossed = [step for step, value in rows if value >= 0.5]
    assert min((step for step, value in found.items() if value >= 0.5), default=None) == min(crossed, default=None)


def test_of_a_repeated_step_the_last_value_counts():
    series = Series()
    for value in (0.1, 0.2, 0.2):
        series.add(7, value)
    assert (series.points(), series.repeated) == ({7: 0.2}, 1)
