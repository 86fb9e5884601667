"""Code on pages: found, and run in order as a reader would."""

import re
import shlex
from pathlib import Path
from typing import Any

import torch

__all__ = ["blocks", "command_lines", "run_blocks", "shell_lines"]


def blocks(text: str, language: str) -> list[str]:
    return re.findall(rf"^```{language}\n(.*?)^```", text, re.DOTALL | re.MULTILINE)


def run_blocks(path: Path, seed: int = 0) -> dict[str, Any]:
    """Every Python block of a page, in one session, and the names it leaves; a failure shows the page's line.

    What a page prints must not depend on `seed`, with which the session begins.
    """
    torch.set_num_threads(1)
    torch.manual_seed(seed)
    names: dict[str, Any] = {}
    text = path.read_text(encoding="utf-8")
    for block in blocks(text, "python"):
        line = text[: text.index(block)].count("\n")
        exec(compile("\n" * line + block, str(path), "exec"), names)
    return names


def shell_lines(text: str) -> list[str]:
    """The lines of a page's shell blocks; one that ends with a backslash goes on in the next."""
    return [line for block in blocks(text, "sh") for line in re.sub(r"\\\n\s*", "", block).splitlines()]


def command_lines(text: str) -> list[list[str]]:
    """The words of every `grokscope …` in a page's shell blocks."""
    lines = [shlex.split(line, comments=True) for line in shell_lines(text)]
    return [words[1:] for words in lines if words[:1] == ["grokscope"]]
