"""Runs drawn, summarised and exported: page, charts, tables, Parquet."""

__all__: tuple[str, ...] = ()  # each part is imported by its own module: some need matplotlib, others scipy
