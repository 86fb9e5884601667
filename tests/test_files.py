"""Files that are whole or absent."""

from pathlib import Path

import pytest

from grokscope.errors import InputError
from grokscope.files import write_atomically


def test_a_write_where_no_folder_can_be_is_refused(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("mine")
    with pytest.raises(InputError, match="could not be written: Not a directory"):
        write_atomically(tmp_path / "file" / "x", b"")
    with pytest.raises(InputError, match="could not be written: File name too long"):
        write_atomically(tmp_path / ("x" * 300), b"")
