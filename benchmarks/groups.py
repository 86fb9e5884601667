"""Time and memory to get a group's characters and modes from nothing but its name, each in a fresh process."""

import json
import subprocess
import sys

from benchmarks.provenance import save

GROUPS = ("S4", "S5", "A6", "PSL2_11", "S6", "D500", "Z1000")
CHILD = """
import json, resource, sys, time
from grokscope.tasks import character_table, group_modes, named_group
before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
start = time.perf_counter()
group = named_group(sys.argv[1])
table, modes = character_table(group), group_modes(group)
seconds = time.perf_counter() - start
peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
print(json.dumps({
    "group": group.name, "order": group.order, "classes": len(group.classes), "modes": len(modes),
    "seconds": round(seconds, 3), "peak_mb": round(peak / 1024), "above_import_mb": round((peak - before) / 1024),
    "orthogonality_error": table.orthogonality_error,
}))
"""


def measure(name: str) -> dict[str, float]:
    done = subprocess.run([sys.executable, "-c", CHILD, name], capture_output=True, text=True, check=True)
    return json.loads(done.stdout)


def main() -> None:
    print(f"{'group':>8} {'order':>6} {'seconds':>8} {'peak MB':>8} {'orthogonality error':>20}")
    rows = []
    for name in GROUPS:
        row = min((measure(name) for _ in range(3)), key=lambda r: r["seconds"])
        rows.append(row)
        print(
            f"{name:>8} {row['order']:>6} {row['seconds']:>8} {row['peak_mb']:>8} {row['orthogonality_error']:>20.1e}"
        )
    save("groups", rows)


if __name__ == "__main__":
    main()
