"""Logs that other programs wrote: CSV and W&B exports, JSON, JSON lines, TensorBoard events; as columns of ours."""

from grokscope.runs.foreign_logs.log import ForeignLog
from grokscope.runs.foreign_logs.reading import read_foreign_logs

__all__ = ["ForeignLog", "read_foreign_logs"]
