"""The bake-off: every way of making a run grok sooner, on the same tasks, seeds, budget and tuning."""
