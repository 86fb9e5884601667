"""Runs drawn, summarised and exported: page, charts, tables, Parquet."""
