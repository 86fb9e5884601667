import pytest

from grokscope.errors import shown


def nested(depth: int) -> list:
    value: list = []
    for _ in range(depth):
        value = [value]
    return value


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        ("add_mod97", "'add_mod97'"),
        ("a\x1b[31m\n\u202e\ud800", r"'a\x1b[31m\n\u202e\ud800'"),
        ("数据/Übung", "'数据/Übung'"),
        ("x" * 5000, f"'{'x' * 79}… (5002 characters)"),
        (10**5000, "<int too large to write>"),
        ([10**5000], "<list too large to write>"),
        (nested(100_000), "<list too large to write>"),
    ],
    ids=["short", "control", "letters", "long", "integer", "list", "nested"],
)
def test_anything_is_shown_on_one_short_line(value: object, expected: str) -> None:
    assert shown(value) == expected
