// Overview: what was run, how it ended, whether synchronisation came first, and the verdicts on the claims.
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

const mark = (at, text) => ({ label: text, kind: "vertical", role: "theory", source: "run", x: [at], texts: [text] });

const overview = {
  ...claimsSection,
  title: "Overview",
  build() {
    this.summary = h("p", { class: "lede" });
    this.tiles = h("dl", { class: "tiles" });
    this.outcomes = new Figure("outcomes", "How the runs ended", { height: 260 });
    this.headline = new Figure("headline", "Around grokking: synchronisation and accuracy", { height: 320 });
    this.leads = new Figure("leads", "Lead of synchronisation over grokking");
    this.claims = h("section", { "aria-labelledby": "claims-title" });
    this.title2 = h("h1", {}, "");
    return [
      this.title2,
      this.summary,
      this.tiles,
      this.claims,
      h("div", { class: "pair" }, this.headline.root, this.leads.root),
      this.outcomes.root,
    ];
  },
  update() {
    const rows = chosen(),
      tasks = [...new Set(rows.map(row => row.task))],
      groks = rows.filter(row => isNumber(row.grokked));
    this.title2.textContent = data.title;
    const decays = [...new Set(rows.map(row => row.weight_decay))].filter(isNumber).sort((a, b) => a - b);
    const steps = rows.reduce((sum, row) => sum + (row.last ?? 0) - (row.fork ? row.fork.step : 0), 0);
    const part = rows.length < data.rows.length ? ` (of ${whole(data.rows.length)}; the others are filtered out)` : "";
    this.summary.textContent =
      `${counted(rows.length, "run")}${part} of ${counted(tasks.length, "task")}: ${tasks
        .slice(0, 6)
        .map(task => clipped(task, 40))
        .join(", ")}${tasks.length > 6 ? " …" : ""}. ` +
      `Weight decay ${decays.length > 1 ? `from ${short(decays[0])} to ${short(decays[decays.length - 1])}` : short(decays[0])}, ${counted(rows.filter(row => row.fork).length, "fork")}, ${whole(steps)} optimiser steps in all.`;
    const led = groks.filter(row => !row.fork && (row.lead !== null || row.lead_status === "grokked without it")),
      leads = led.map(row => row.lead).filter(isNumber);
    const cut = led.filter(row => row.stopped_early).length;
    const tile = (name, value, note) =>
      h("div", {}, h("dt", {}, name), h("dd", {}, h("strong", {}, value), h("small", {}, note)));
    this.tiles.replaceChildren(
      tile("grokked", `${whole(groks.length)} of ${whole(rows.length)}`, "reached 95 % validation accuracy"),
      tile(
        "median step of grokking",
        groks.length ? whole(median(groks.map(row => row.grokked))) : DASH,
        `of the ${whole(groks.length)} that did`,
      ),
      tile(
        "synchronised first",
        led.length ? `${whole(led.filter(row => row.lead > 0).length)} of ${whole(led.length)}` : DASH,
        "grokked runs that are no forks",
      ),
      tile(
        "median lead",
        leads.length ? `${whole(median(leads))} steps` : DASH,
        (leads.length < led.length
          ? `${counted(led.length - leads.length, "run")} never synchronised`
          : "from synchronisation to grokking") +
          (cut ? `; ${counted(cut, "run")} stopped early, which biases it` : ""),
      ),
    );
    this.showOutcomes(rows);
    this.showHeadline(groks.filter(row => !row.fork && row.log.fsd));
    this.showLeads(led);
    this.showClaims();
  },
  showOutcomes(rows) {
    const names = [...new Set([...Object.keys(OUTCOMES), ...rows.map(row => row.outcome)])].filter(name =>
      rows.some(row => row.outcome === name),
    );
    const tasks = [...new Set(rows.map(row => row.task))].sort(),
      bars = tasks.length > 1 && tasks.length <= 24 ? ["all runs", ...tasks] : ["all runs"];
    const members = bars.map((bar, i) => (i ? rows.filter(row => row.task === bar) : rows)),
      below = bars.map(() => 0);
    const series = names.map(name => {
      const counts = members.map(some => some.filter(row => row.outcome === name).length),
        y = counts.map((count, i) => count / Math.max(members[i].length, 1));
      const base = [...below];
      y.forEach((share, i) => {
        below[i] += share;
      });
      return {
        label: `${name}: ${counts[0]}`,
        kind: "bars",
        role: outcomeRole(name),
        source: "run",
        x: bars.map((_, i) => i),
        y,
        base,
        texts: counts.map(count => (count ? String(count) : "")),
      };
    });
    this.outcomes.show(
      {
        x_label: "task",
        y_label: "share of runs",
        x_ticks: bars.map((bar, i) => [i, clipped(bar, 18)]),
        y_range: [0, 1],
        x_range: [-0.6, bars.length - 0.4],
        series,
      },
      () => [
        ["task", "outcome", "runs"],
        ...bars.flatMap((bar, i) =>
          names.map(name => [bar, name, members[i].filter(row => row.outcome === name).length]),
        ),
      ],
    );
  },
  showHeadline(rows) {
    const line = (name, label, role) => {
      const found = pooled(
        rows
          .map(row => ({ x: Array.from(row.log.step, step => step - row.grokked), y: row.log[name] }))
          .filter(one => one.y),
      );
      return (
        found && curve(`${label} (median, middle 80 %)`, found.x, found.y, role, { low: found.low, high: found.high })
      );
    };
    const series = [
      line("validation_accuracy", "validation accuracy", "validation"),
      line("fsd", "FSD", "fsd"),
      line("train_accuracy", "train accuracy", "train"),
    ].filter(Boolean);
    if (!series.length) return this.headline.empty("No run has grokked yet.");
    this.headline.note.textContent = `Every run is shifted so that it groks at 0: ${counted(rows.length, "run")}. Left of 0 is before grokking.`;
    return this.headline.show({
      x_label: "steps from grokking",
      y_label: "accuracy, FSD",
      y_range: SHARE,
      series: [...series, mark(0, "grokking")],
    });
  },
  showLeads(rows) {
    const known = rows.filter(row => isNumber(row.lead)),
      tasks = [...new Set(rows.map(row => row.task))].sort();
    if (!known.length) return this.leads.empty("No run has both synchronised and grokked yet.");
    this.leads.note.textContent = `A dot is a run; right of 0 it synchronised first. A diamond is a task's median. ${counted(rows.length - known.length, "run")} grokked without synchronising.`;
    const of = task => known.filter(row => row.task === task).map(row => row.lead),
      many = tasks.filter(task => of(task).length > 1);
    const dots = {
      label: "run",
      kind: "points",
      role: "validation",
      source: "run",
      x: known.map(row => row.lead),
      y: known.map((row, i) => tasks.indexOf(row.task) + (((i * 7) % 15) - 7) / 40),
      tips: known.map(row => `${clipped(row.name)}: ${whole(row.lead)}`),
    };
    const medians = {
      label: "median of a task",
      kind: "points",
      role: "grokked",
      source: "paper",
      x: many.map(task => median(of(task))),
      y: many.map(task => tasks.indexOf(task)),
    };
    return this.leads.show(
      {
        x_label: "lead in steps",
        y_label: "task",
        y_ticks: tasks.map((task, i) => [i, task]),
        y_range: [tasks.length - 0.5, -0.5],
        height: Math.max(170, tasks.length * 34 + 76),
        series: [dots, medians, { label: "grokking", kind: "vertical", role: "theory", source: "run", x: [0] }],
      },
      () => [
        ["run", "task", "synchronised", "grokked", "lead"],
        ...rows.map(row => [row.name, row.task, row.sync, row.grokked, row.lead]),
      ],
    );
  },
};
