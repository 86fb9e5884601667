"""A group's classes, characters and modes, with the checks they pass."""

import json
from typing import Any

import numpy as np
from rich.console import Console
from rich.markup import escape
from rich.measure import Measurement
from rich.table import Table

from grokscope.cli.columns import print_columns
from grokscope.errors import shown
from grokscope.tasks import CharacterTable, Group, Modes, character_table, group_modes, group_of

__all__ = ["checks", "group_facts", "show_group"]

SHOWN_MODES = 24
CHECK_FAILED = 1
Check = tuple[str, float, float]  # a law, the largest error found, the largest error allowed


def show_group(name: str, as_json: bool) -> None:
    """Print a group's order, conjugacy classes, characters and modes; exit status 1 if one of the checks fails."""
    with Console(stderr=True).status(f"computing the characters of {escape(shown(name))}"):
        group = group_of(name)
        characters, modes = character_table(group), group_modes(group)
        checked = checks(characters, modes)
    if as_json:
        print(json.dumps(group_facts(characters, modes, checked)))
    else:
        _show(characters, modes, checked)
    if not all(error <= limit for _, error, limit in checked):
        raise SystemExit(CHECK_FAILED)


def _show(characters: CharacterTable, modes: Modes, checked: list[Check]) -> None:
    console, group, count = Console(highlight=False), characters.group, len(characters.group.classes)
    kind = "abelian" if group.is_abelian else "not abelian"
    console.print(f"[bold]{escape(group.name)}[/bold]  order {group.order}, {count} classes, {kind}", soft_wrap=True)
    # A column is three letters wide at least: a view of a million cells that cannot fit is not even built.
    view = _character_view(characters) if count <= console.width // 3 else None
    if view is not None and Measurement.get(console, console.options, view).maximum < console.width:
        console.print(view)
    else:
        console.print(f"characters: {count} × {count}, too wide for this window; --json prints them")
    console.print(f"{len(modes)} modes", style="italic")
    rows = [(mode.label, str(mode.irrep_dimension), str(mode.dimension)) for mode in modes.modes[:SHOWN_MODES]]
    more = [(f"… {len(modes) - SHOWN_MODES} more", "", "")] if len(modes) > SHOWN_MODES else []
    heads = ("mode", "irrep dimension", "function-space dimension")
    print_columns(heads, rows + more, right=frozenset(heads[1:]))
    for title, error, limit in checked:
        verdict = "[green]ok[/green]" if error <= limit else "[red]FAILED[/red]"
        console.print(f"  {verdict}  {title}: largest error {error:.0e}")


def group_facts(characters: CharacterTable, modes: Modes, checked: list[Check]) -> dict[str, Any]:
    """Everything `--json` prints; a character is a pair [real part, imaginary part] for each class."""
    group = characters.group
    return {
        "name": group.name,
        "order": group.order,
        "abelian": group.is_abelian,
        "elements": list(group.elements),
        "class_sizes": group.class_sizes.tolist(),
        "class_orders": group.orders[group.representatives].tolist(),
        "class_representatives": group.representatives.tolist(),
        "irreps": list(characters.labels),
        "dimensions": characters.dimensions.tolist(),
        "indicators": characters.indicators.tolist(),
        "characters": np.stack([characters.values.real, characters.values.imag], axis=-1).round(15).tolist(),
        "modes": [
            {"label": m.label, "irrep_dimension": m.irrep_dimension, "dimension": m.dimension, "irreps": list(m.irreps)}
            for m in modes.modes
        ],
        "checks": [{"title": title, "error": error, "limit": limit} for title, error, limit in checked],
    }


def checks(characters: CharacterTable, modes: Modes) -> list[Check]:
    """What must hold of any group."""
    group = characters.group
    columns = characters.values.conj().T @ characters.values * (group.class_sizes / group.order)
    gram = modes.basis.T @ modes.basis
    return [
        ("rows of characters are orthonormal", characters.orthogonality_error, 1e-10),
        ("columns of characters are orthogonal", float(np.abs(columns - np.eye(len(columns))).max()), 1e-10),
        ("the squares of the dimensions sum to the order", _distance(characters.dimensions**2, group.order), 0.0),
        ("modes and the constant fill the function space", _distance(modes.dimensions, group.order - 1), 0.0),
        ("the modes' basis is orthonormal", float(np.abs(gram - np.eye(len(gram))).max()), 1e-10),
        ("the modes are invariant under the group", _invariance_error(group, modes), 1e-8),
    ]


def _distance(parts: np.ndarray, total: int) -> float:
    return float(abs(int(parts.sum()) - total))


def _invariance_error(group: Group, modes: Modes) -> float:
    """Powers of one random function, and of its left and right translates by every generator, must agree."""
    function = np.random.Generator(np.random.PCG64(0)).standard_normal(group.order)
    translates = [function[group.table[g]] for g in group.generators]
    translates += [function[group.table[:, g]] for g in group.generators]
    expected = modes.power(function)
    return max((float(np.abs(modes.power(t) - expected).max(initial=0.0)) for t in translates), default=0.0)


def _character_view(characters: CharacterTable) -> Table:
    group = characters.group
    view = Table(title="characters", title_justify="left", box=None)
    view.add_column("irrep", style="bold")
    view.add_column("ν", justify="right")
    for representative, size in zip(group.representatives, group.class_sizes, strict=True):
        view.add_column(f"{escape(group.elements[representative])}\n×{size}", justify="right", no_wrap=True)
    for label, indicator, row in zip(characters.labels, characters.indicators, characters.values, strict=True):
        view.add_row(label, str(indicator), *(_number(value) for value in row))
    return view


def _number(value: complex) -> str:
    """A character value, short: 2, −0.62, 0.5+0.87i."""
    real, imaginary = (f"{part:.2f}".rstrip("0").rstrip(".") for part in (value.real, value.imag))
    real, imaginary = ("0" if part == "-0" else part for part in (real, imaginary))
    if imaginary == "0":
        return real
    return f"{'' if real == '0' else real}{'' if imaginary.startswith('-') or real == '0' else '+'}{imaginary}i"
