"""Damaged runs and plans, as every command names them beside those that are whole."""

from collections.abc import Mapping, Sequence

from grokscope.errors import InputError, for_shell, plural

__all__ = ["describe_damage", "reject_damage"]

SHOWN = 10


def describe_damage(damaged: Mapping[str, str], folder: object, plans: Sequence[str] = ()) -> str:
    """What is damaged in a folder, a line each, and where to turn; empty if nothing is.

    >>> print(describe_damage({"add_mod97_s0-0123456789abcdef": "spec.json is missing"}, "runs/first"))
    1 damaged run; `grokscope doctor runs/first` says what can be repaired:
      add_mod97_s0-0123456789abcdef: spec.json is missing
    """
    if not damaged and not plans:
        return ""
    counts = [plural(len(part), noun) for part, noun in ((damaged, "damaged run"), (plans, "damaged plan")) if part]
    sentences = [*(f"{name}: {why}" for name, why in damaged.items()), *plans]
    lines = [f"{' and '.join(counts)}; `grokscope doctor {for_shell(folder)}` says what can be repaired:"]
    lines += [f"  {sentence}" for sentence in sentences[:SHOWN]]
    if len(sentences) > SHOWN:
        lines.append(f"  … and {len(sentences) - SHOWN:,} more")
    return "\n".join(lines)


def reject_damage(damaged: Mapping[str, str], folder: object) -> None:
    """Name the first of the runs that were left alone because they are damaged, if there are any."""
    for name, why in damaged.items():
        more = f" (and {plural(len(damaged) - 1, 'more run')})" if len(damaged) > 1 else ""
        raise InputError(
            f"{name} is damaged and was left alone{more}: {why}; see `grokscope doctor {for_shell(folder)}`"
        )
