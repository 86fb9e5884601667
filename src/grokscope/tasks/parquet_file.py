"""A Parquet file of rows that is not trusted; needs pyarrow, the extra `data`."""

import io
from importlib import import_module
from typing import Any

import numpy as np

from grokscope.errors import InputError, require, shown
from grokscope.tasks.row_arrays import HELD_OUT_PREFIX, MAX_NUMBERS
from grokscope.tasks.row_groups import DRAWN
from grokscope.tasks.task import MAX_ROWS

__all__ = ["parquet_arrays"]

COLUMNS = ("tokens", "vectors", "answer", "group")
RULES = ("train", "validation")
MAX_GROUPS = 64  # each is a mask of all rows
SETTINGS = ("classes", "vocabulary", "success")


def parquet_arrays(content: bytes, what: str) -> dict[str, Any]:
    """The arrays of a file with a row for each row: `tokens` or `vectors`, a list of one length, and `answer`.

    A column `group` may name each row's: `drawn`, `train`, `validation`, or a group that is held out. The file's
    metadata may have `classes`, `vocabulary` and `success`. How many rows and numbers there are is checked in the
    metadata, before any column is read.
    """
    try:
        parquet = import_module("pyarrow.parquet")
    except ModuleNotFoundError:
        raise InputError("a Parquet file needs pyarrow; install it with: pip install 'grokscope[data]'") from None
    try:
        file = parquet.ParquetFile(io.BytesIO(content))
        _check_sizes(file.metadata, what)
        names = [name for name in COLUMNS if name in file.schema_arrow.names]
        require("answer" in names, f"{what} needs a column answer, got {shown(file.schema_arrow.names)}")
        require(file.metadata.num_rows, f"{what} has no row")
        for name in names:
            _check_type(name, file.schema_arrow.field(name).type, what)
        # Groups as codes: a text that each of a million rows has would be unpacked a million times.
        coded = [name for name in names if name == "group"]
        table = parquet.ParquetFile(io.BytesIO(content), read_dictionary=coded).read(columns=names)
    except InputError:
        raise
    except Exception as error:  # pyarrow has errors of many kinds for a damaged file
        raise InputError(f"{what} is not a Parquet file of rows: {shown(str(error))}") from None
    found = {name if name != "answer" else "answers": _values(table[name], f"{name} of {what}")
             for name in names if name != "group"}  # fmt: skip
    metadata = {key.decode(errors="replace"): value.decode(errors="replace")
                for key, value in (file.schema_arrow.metadata or {}).items()}  # fmt: skip
    chosen = {key: value for key, value in metadata.items() if key in SETTINGS}
    return found | _settings(chosen, what) | (_groups(table["group"], what) if "group" in names else {})


def _check_sizes(metadata: Any, what: str) -> None:
    require(metadata.num_rows <= MAX_ROWS, f"{what} may have at most {MAX_ROWS:,} rows", metadata.num_rows)
    groups = [metadata.row_group(i) for i in range(metadata.num_row_groups)]
    numbers = sum(group.column(j).num_values for group in groups for j in range(group.num_columns))
    require(numbers <= MAX_NUMBERS, f"{what} may hold at most {MAX_NUMBERS:,} numbers", numbers)
    unpacked = sum(group.total_byte_size for group in groups)
    require(unpacked <= 8 * MAX_NUMBERS, f"{what} may unpack to at most {8 * MAX_NUMBERS:,} bytes", unpacked)


def _check_type(name: str, kind: Any, what: str) -> None:
    """Numbers, or lists of them; of a group texts. Of anything else numpy would make objects."""
    types = import_module("pyarrow.types")
    if name == "group":
        values = kind.value_type if types.is_dictionary(kind) else kind
        is_text = types.is_string(values) or types.is_large_string(values)
        require(is_text, f"the group of {what} must be a text in every row", str(kind))
        return
    values = kind.value_type if _is_list(kind) else kind
    is_number = types.is_integer(values) or types.is_floating(values) or types.is_boolean(values)
    require(is_number, f"the {name} of {what} must be numbers, or lists of numbers", str(kind))


def _is_list(kind: Any) -> bool:
    types = import_module("pyarrow.types")
    return bool(types.is_list(kind) or types.is_large_list(kind) or types.is_fixed_size_list(kind))


def _values(column: Any, which: str) -> np.ndarray:
    """A column of numbers, or of lists of numbers of one length."""
    require(not column.null_count, f"the {which} must have a value in every row")
    if not _is_list(column.type):
        values: np.ndarray = column.to_numpy()
        return values
    lengths = import_module("pyarrow.compute").list_value_length(column).unique().to_pylist()
    require(len(lengths) == 1, f"the {which} must have rows of one length: they are ragged")
    require(lengths[0], f"the {which} must have at least one number in every row")
    parts = [chunk.flatten() for chunk in column.chunks]
    # A missing number would become NaN, and whole numbers real ones with it.
    require(not any(part.null_count for part in parts), f"the {which} must have a value in every place")
    flat = np.concatenate([part.to_numpy(zero_copy_only=False) for part in parts])
    return flat.reshape(-1, lengths.pop())


def _groups(column: Any, what: str) -> dict[str, np.ndarray]:
    """Masks of the named groups; rows of which the split draws need none."""
    require(not column.null_count, f"the group of {what} must be a text in every row")
    column = column.unify_dictionaries().combine_chunks()
    codes = column.indices.to_numpy()
    used = np.unique(codes)
    require(len(used) <= MAX_GROUPS, f"{what} may have at most {MAX_GROUPS} groups", len(used))
    names = {code: column.dictionary[int(code)].as_py() for code in used}
    return {
        name if name in RULES else f"{HELD_OUT_PREFIX}{name}": codes == code
        for code, name in sorted(names.items(), key=lambda item: item[1])
        if name != DRAWN
    }


def _settings(metadata: dict[str, str], what: str) -> dict[str, int | float]:
    try:
        return {key: float(text) if key == "success" else int(text) for key, text in metadata.items()}
    except ValueError:
        raise InputError(
            f"{', '.join(metadata)} in the metadata of {what} must be numbers, got {shown(metadata)}"
        ) from None
