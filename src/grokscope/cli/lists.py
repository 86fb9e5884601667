"""Lists on the command line: several words, or one word with commas."""

import re
from collections.abc import Iterable, Iterator, Sequence

from grokscope.cli.commands import Argument

__all__ = ["separate"]

TABLE = "table:"  # the beginning of a task that is a file, whose name may have a comma
SEEDS, NUMBERS = "--seeds", re.compile(r"[0-9:,]+")


def separate(words: Sequence[str], arguments: Iterable[Argument]) -> list[str]:
    """The words with each list of values as single words; the seeds, which have ranges, as one word.

    >>> from grokscope.cli import COMMANDS, arguments_of
    >>> separate("add_mod97,S5 --weight-decay 1,2 3 --seeds 0 1 4:6 --out a,b".split(), arguments_of(COMMANDS["train"]))
    ['add_mod97', 'S5', '--weight-decay', '1', '2', '3', '--seeds', '0,1,4:6', '--out', 'a,b']
    """
    known = {one.written: one for one in arguments}
    positional = next((one for one in known.values() if not one.written.startswith("--") and one.is_list), None)
    end = words.index("--") if "--" in words else len(words)
    return [*_separated(words[:end], known, positional), *words[end:]]


def _separated(words: Sequence[str], known: dict[str, Argument], positional: Argument | None) -> Iterator[str]:
    taking: Argument | None = positional
    seeds: list[str] = []
    for word in [*words, None]:
        if seeds and (word is None or not NUMBERS.fullmatch(word)):
            yield ",".join(seeds)
            seeds, taking = [], positional
        if word is None:
            return
        option, equals, value = word.partition("=")
        if word.startswith("--"):
            taking = known.get(option.replace("_", "-"))
            if equals and taking is not None and taking.is_list:
                yield from (option, *value.split(","))
            else:
                yield word
            if taking is None or not taking.takes_value or (equals and not taking.is_list):
                taking = positional
        elif taking is not None and taking.written == SEEDS and NUMBERS.fullmatch(word):
            seeds.append(word)
        elif taking is not None and taking.is_list and not word.startswith(TABLE):
            yield from word.split(",")
        else:
            yield word
            taking = taking if taking is not None and taking.is_list else positional
