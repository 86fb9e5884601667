"""Which tier a column needs, in one place for scorers and another for descriptions of tables: they agree."""

import pytest

from grokscope.forecast.tiers import OF_COLUMNS, column_tier
from grokscope.measures.tier_signals import TIER_COLUMNS
from grokscope.view.signals import describe_column


@pytest.mark.parametrize("name", [*OF_COLUMNS, *TIER_COLUMNS, "norm_embed", "validation_loss", "fsd", "rank"])
def test_a_table_and_a_scorer_say_the_same_tier(name: str) -> None:
    if name not in ("learning_rate", "train_relative_error"):  # a setting, and a column of real answers
        assert f"(tier {column_tier(name)}: " in describe_column(name)
    if name in TIER_COLUMNS:
        assert column_tier(name) == TIER_COLUMNS[name][0]
