// Many runs in few lines: only runs of one configuration are summarised together, and a band needs enough of them.
const FEWEST = 8, // runs of which a median with a band says more than the runs themselves
  MOST_BANDS = 4, // groups whose bands can still be told apart
  MOST_GROUPS = 12,
  MOST_LINES = 40;

// Median and the middle 80 % of many lines on a common grid, as far as half of them go; a line counts where it is known.
function pooled(lines, count = 121) {
  const known = lines.filter(line => line.x.length);
  if (!known.length) return null;
  const covered = x =>
    known.filter(line => line.x[0] <= x && x <= line.x[line.x.length - 1]).length >= known.length / 2;
  const all = [...new Set(known.flatMap(line => Array.from(line.x)))].filter(covered).sort((a, b) => a - b);
  const grid =
    all.length <= count * 2
      ? all
      : Array.from({ length: count }, (_, i) => all[Math.round((i * (all.length - 1)) / (count - 1))]);
  const at = (line, x) => {
    const xs = line.x,
      last = xs.length - 1;
    if (x < xs[0] || x > xs[last]) return NaN;
    let low = 0,
      high = last;
    while (high - low > 1) {
      const middle = (low + high) >> 1;
      if (xs[middle] <= x) low = middle;
      else high = middle;
    }
    if (xs[high] <= x) low = high;
    if (low === high || xs[low] === x) return line.y[low];
    return line.y[low] + ((line.y[high] - line.y[low]) * (x - xs[low])) / (xs[high] - xs[low]);
  };
  const found = { x: grid, y: [], low: [], high: [], n: known.length };
  for (const x of grid) {
    const values = known
        .map(line => at(line, x))
        .filter(isNumber)
        .sort((a, b) => a - b),
      enough = values.length >= Math.max(1, known.length / 2);
    found.y.push(enough ? quantile(values, 0.5) : NaN);
    found.low.push(enough ? quantile(values, 0.1) : NaN);
    found.high.push(enough ? quantile(values, 0.9) : NaN);
  }
  return found;
}

// Runs of one configuration differ in their seeds alone. Its name has the task and λ, and of the rest what is unusual.
const NAMED = ["task", "weight_decay"];
const SETTINGS = Object.keys(GROUPINGS).filter(name => name !== "seed" && name !== "outcome");

function commonest(texts) {
  const counts = new Map();
  for (const text of texts) counts.set(text, (counts.get(text) || 0) + 1);
  return [...counts].reduce((best, one) => (one[1] > best[1] ? one : best), ["", 0])[0];
}

// Groups of rows, the largest first, each named by what distinguishes it from the others.
function groupsOf(rows, by = "configuration") {
  const parts = by === "configuration" ? SETTINGS : [by],
    text = (row, part) => GROUPINGS[part][1](row),
    found = new Map();
  for (const row of rows) {
    const key = parts.map(part => text(row, part)).join("\n");
    if (!found.has(key)) found.set(key, []);
    found.get(key).push(row);
  }
  const groups = [...found.values()],
    usual = new Map(parts.map(part => [part, commonest(groups.flat().map(row => text(row, part)))])),
    varying = parts.filter(part => new Set(groups.map(([row]) => text(row, part))).size > 1);
  const label = ([row]) =>
    (varying.length ? varying : parts.slice(0, 1))
      .filter(part => parts.length === 1 || NAMED.includes(part) || text(row, part) !== usual.get(part))
      .map(part => clipped(text(row, part), 40))
      .join(", ");
  return groups
    .map(members => ({ label: label(members) || "the usual configuration", members }))
    .sort((a, b) => b.members.length - a.members.length || a.label.localeCompare(b.label, "en", { numeric: true }));
}

// One group in a colour of its own: its median, with a band where there is room for one, or else each of its runs.
function linesOf(lines, label, role, banded = true) {
  const known = lines.filter(line => line.x.length && line.y),
    legend = `${label} (n = ${known.length})`;
  if (known.length < FEWEST)
    return known.map(line =>
      curve(line.name, line.x, line.y, role, { legend: known.length > 1 ? legend : label, tip: line.name }),
    );
  const { x, y, low, high } = pooled(known);
  return [curve(legend, x, y, role, banded ? { low, high } : {})];
}

// What is drawn of rows, of one column of their logs: each for itself, or by groups.
function grouped(rows, name, by) {
  const known = rows.filter(row => row.log[name]);
  if (by === "none") return { lines: curvesOf(known.slice(0, MOST_LINES), name), note: most(known.length) };
  const groups = groupsOf(known, by),
    shown = groups.slice(0, MOST_GROUPS),
    large = shown.filter(group => group.members.length >= FEWEST).length,
    banded = shown.length <= MOST_BANDS;
  const lines = shown.flatMap(({ label, members }, place) =>
    linesOf(
      members.map(row => ({ name: row.name, x: row.log.step, y: row.log[name] })),
      clipped(label, 80),
      `line ${place}`,
      banded,
    ),
  );
  const note = [
    large ? `Line: median over the runs of a group${banded ? "; band: the middle 80 %" : ""}.` : "",
    large < shown.length ? `Of groups of fewer than ${FEWEST} runs each run is drawn.` : "",
    groups.length > shown.length ? `These are the ${MOST_GROUPS} largest of ${groups.length} groups.` : "",
  ];
  return { lines, note: note.filter(Boolean).join(" ") };
}
const most = count =>
  count > MOST_LINES
    ? `The first ${MOST_LINES} of ${whole(count)} runs; filter, select or aggregate to see others.`
    : "";
