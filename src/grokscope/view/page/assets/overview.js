// Overview: what was run, how it ended, whether synchronisation came first, and what became of the claims.
const VERDICTS = { reproduced: ["✓", "good"], partly: ["◐", "fair"], "not reproduced": ["✗", "bad"], "paper inconsistent": ["≠", "odd"], "not testable as written": ["∅", "odd"], "too few runs": ["…", "few"] };
const badge = verdict => {
  const [sign, kind] = VERDICTS[verdict] || ["·", "few"];
  return h("span", { class: `badge ${kind}` }, h("span", { "aria-hidden": "true" }, `${sign} `), clipped(String(verdict ?? "unknown"), 40));
};
const outcomeColor = outcome => ({ grokked: ink("c2"), "grokked, then unstable †": ink("c5"), "never within the budget": ink("c0"), "unstable ‡": ink("c1"), diverged: ink("c3"), "unfinished, grokked": ink("c4") })[outcome] || ink("c7");

// Median and the middle 80 % of many lines on a common grid, as far as half of them go; a line counts where it is known.
function pooled(lines, count = 121) {
  const known = lines.filter(line => line.x.length);
  if (!known.length) return null;
  const covered = x => known.filter(line => line.x[0] <= x && x <= line.x[line.x.length - 1]).length >= known.length / 2;
  const all = [...new Set(known.flatMap(line => Array.from(line.x)))].filter(covered).sort((a, b) => a - b);
  const grid = all.length <= count * 2 ? all : Array.from({ length: count }, (_, i) => all[Math.round(i * (all.length - 1) / (count - 1))]);
  const at = (line, x) => {
    const xs = line.x, last = xs.length - 1;
    if (x < xs[0] || x > xs[last]) return NaN;
    let low = 0, high = last;
    while (high - low > 1) { const middle = (low + high) >> 1; if (xs[middle] <= x) low = middle; else high = middle; }
    if (xs[high] <= x) low = high;
    if (low === high || xs[low] === x) return line.y[low];
    return line.y[low] + (line.y[high] - line.y[low]) * (x - xs[low]) / (xs[high] - xs[low]);
  };
  const found = { x: grid, y: [], low: [], high: [], n: known.length };
  for (const x of grid) {
    const values = known.map(line => at(line, x)).filter(isNumber).sort((a, b) => a - b), enough = values.length >= Math.max(1, known.length / 2);
    found.y.push(enough ? quantile(values, 0.5) : NaN);
    found.low.push(enough ? quantile(values, 0.1) : NaN);
    found.high.push(enough ? quantile(values, 0.9) : NaN);
  }
  return found;
}

const overview = {
  title: "Overview",
  build() {
    this.summary = h("p", { class: "lede" });
    this.tiles = h("dl", { class: "tiles" });
    this.outcomes = new Figure("outcomes", "How the runs ended");
    this.headline = new Figure("headline", "Around grokking: synchronisation and accuracy", "");
    this.leads = new Figure("leads", "Lead of synchronisation over grokking", "");
    this.claims = h("section", { "aria-labelledby": "claims-title" });
    this.title2 = h("h1", {}, "");
    return [this.title2, this.summary, this.tiles, this.claims, h("div", { class: "pair" }, this.headline.root, this.leads.root), this.outcomes.root];
  },
  update() {
    const rows = chosen(), tasks = [...new Set(rows.map(row => row.task))], groks = rows.filter(row => isNumber(row.grokked));
    this.title2.textContent = data.title;
    const decays = [...new Set(rows.map(row => row.weight_decay))].sort((a, b) => a - b);
    const steps = rows.reduce((sum, row) => sum + (row.last ?? 0) - (row.fork ? row.fork.step : 0), 0);
    const part = rows.length < data.rows.length ? ` (of ${whole(data.rows.length)}; the others are filtered out)` : "";
    this.summary.textContent = `${counted(rows.length, "run")}${part} of ${counted(tasks.length, "task")}: ${tasks.slice(0, 6).map(task => clipped(task, 40)).join(", ")}${tasks.length > 6 ? " …" : ""}. `
      + `Weight decay ${decays.length > 1 ? `from ${short(decays[0])} to ${short(decays[decays.length - 1])}` : short(decays[0])}, ${counted(rows.filter(row => row.fork).length, "fork")}, ${whole(steps)} optimiser steps in all.`;
    const led = groks.filter(row => !row.fork && (row.lead !== null || row.lead_status === "grokked without it")), leads = led.map(row => row.lead).filter(isNumber);
    const cut = led.filter(row => row.stopped_early).length;
    const tile = (name, value, note) => h("div", {}, h("dt", {}, name), h("dd", {}, h("strong", {}, value), h("small", {}, note)));
    this.tiles.replaceChildren(
      tile("grokked", `${whole(groks.length)} of ${whole(rows.length)}`, "reached 95 % validation accuracy"),
      tile("median grok step", groks.length ? whole(median(groks.map(row => row.grokked))) : DASH, `of the ${whole(groks.length)} that did`),
      tile("synchronised first", led.length ? `${whole(led.filter(row => row.lead > 0).length)} of ${whole(led.length)}` : DASH, "grokked runs that are no forks"),
      tile("median lead", leads.length ? `${whole(median(leads))} steps` : DASH, (leads.length < led.length ? `${counted(led.length - leads.length, "run")} never synchronised` : "from synchronisation to grokking") + (cut ? `; ${counted(cut, "run")} stopped early, which biases it` : "")));
    this.showOutcomes(rows);
    this.showHeadline(groks.filter(row => !row.fork && row.log.fsd));
    this.showLeads(led);
    this.showClaims();
  },
  showOutcomes(rows) {
    const names = [...OUTCOMES, ...new Set(rows.map(row => row.outcome))].filter((name, i, all) => all.indexOf(name) === i);
    const counts = names.map(name => [name, rows.filter(row => row.outcome === name).length]).filter(([, count]) => count);
    const tasks = [...new Set(rows.map(row => row.task))].sort(), bars = tasks.length > 1 && tasks.length <= 12 ? ["all", ...tasks] : ["all"];
    this.outcomes.set(() => {
      const width = this.outcomes.body.clientWidth, left = 150, tall = 24, height = bars.length * (tall + 8) + 8;
      const svg = s("svg", { xmlns: SVG, width, height, viewBox: `0 0 ${width} ${height}`, role: "img", "font-family": "system-ui, sans-serif", "font-size": 12, "aria-label": counts.map(([name, count]) => `${count} ${name}`).join(", ") });
      svg.append(s("rect", { width, height, fill: ink("paper") }));
      bars.forEach((bar, place) => {
        const members = bar === "all" ? rows : rows.filter(row => row.task === bar), y = 4 + place * (tall + 8);
        let x = left;
        svg.append(s("text", { x: left - 10, y: y + 16, "text-anchor": "end", fill: ink("ink") }, clipped(bar === "all" ? "all runs" : bar, 18)));
        for (const [name] of counts) {
          const count = members.filter(row => row.outcome === name).length, size = (width - left - 10) * count / Math.max(members.length, 1);
          if (!count) continue;
          svg.append(s("rect", { x, y, width: Math.max(size - 1.5, 0.5), height: tall, rx: 2, fill: outcomeColor(name) }));
          if (size > 24) svg.append(s("text", { x: x + 7, y: y + 16, fill: ink("on"), "font-weight": 600 }, String(count)));
          x += size;
        }
      });
      this.outcomes.body.append(svg);
      for (const [name, count] of counts) this.outcomes.legend.append(swatch(outcomeColor(name), [], `${name}: ${count}`, 1).root);
    }, () => [["outcome", "runs"], ...counts]);
  },
  showHeadline(rows) {
    const line = (name, label, place) => {
      const found = pooled(rows.map(row => ({ x: Array.from(row.log.step, step => step - row.grokked), y: row.log[name] })).filter(one => one.y));
      return found && { ...found, label: `${label} (median, middle 80 %)`, color: color(place), dash: dash(place) };
    };
    const found = [line("validation_accuracy", "validation accuracy", 0), line("fsd", "FSD", 1), line("train_accuracy", "train accuracy", 2)].filter(Boolean);
    if (!found.length) return this.headline.empty("No run has grokked yet.");
    this.headline.note.textContent = `Every run is moved so that it groks at 0: ${counted(rows.length, "run")}. Left of 0 is before grokking.`;
    return lines(this.headline, { lines: found, label: "steps from grokking", range: [-0.03, 1.03], height: 300, marks: [{ at: 0, label: "grokking" }] });
  },
  showLeads(rows) {
    const known = rows.filter(row => isNumber(row.lead)), tasks = [...new Set(rows.map(row => row.task))].sort();
    if (!known.length) return this.leads.empty("No run has both synchronised and grokked yet.");
    this.leads.note.textContent = `A dot is a run; right of 0 it synchronised first. A bar is a task's median. ${counted(rows.length - known.length, "run")} grokked without synchronising.`;
    return this.leads.set(() => {
      const values = known.map(row => row.lead), span = [Math.min(0, ...values), Math.max(0, ...values)], pad = (span[1] - span[0]) * 0.05 || 1;
      const plot = axes(this.leads, { x: [span[0] - pad, span[1] + pad], y: [tasks.length - 0.5, -0.5], xLabel: "lead in steps", yLabel: "", left: 110, height: Math.max(150, tasks.length * 34 + 66), yTicks: tasks.map((task, i) => [i, clipped(task, 14)]),
        about: tasks.map(task => `${clipped(task, 30)}: median lead ${whole(median(known.filter(row => row.task === task).map(row => row.lead)))}`).join("; ") });
      plot.svg.append(s("line", { x1: plot.X(0), x2: plot.X(0), y1: plot.top, y2: plot.bottom, stroke: ink("ink"), "stroke-dasharray": "3 3" }));
      tasks.forEach((task, place) => {
        const members = known.filter(row => row.task === task);
        members.forEach((row, i) => plot.svg.append(s("circle", { cx: plot.X(row.lead), cy: plot.Y(place) + ((i * 7) % 15 - 7), r: 4, fill: color(0), "fill-opacity": 0.6 }, s("title", {}, `${clipped(row.name)}: ${whole(row.lead)}`))));
        if (members.length > 1) { const x = plot.X(median(members.map(row => row.lead))); plot.svg.append(s("line", { x1: x, x2: x, y1: plot.Y(place) - 12, y2: plot.Y(place) + 12, stroke: ink("c1"), "stroke-width": 3 })); }
      });
    }, () => [["run", "task", "synchronised", "grokked", "lead"], ...rows.map(row => [row.name, row.task, row.sync, row.grokked, row.lead])]);
  },
  showClaims() {
    const claims = data.claims;
    if (!claims.length) return this.claims.replaceChildren();
    const verdicts = [...new Set(claims.map(claim => String(claim.verdict)))], wanted = claims.filter(claim => !state.verdict || String(claim.verdict) === state.verdict);
    const interval = claim => Array.isArray(claim.interval) && claim.interval.length === 2 ? ` [${claim.interval.map(end => isNumber(end) ? short(end, 4) : String(end ?? "?")).join(", ")}]` : claim.interval && !Array.isArray(claim.interval) ? ` [${claim.interval}]` : "";
    const plain = value => typeof value === "number" ? short(value, 4) : String(value ?? DASH);
    const rows = wanted.map(claim => h("tr", {},
      h("th", { scope: "row" }, badge(claim.verdict)),
      h("td", {}, h("p", { class: "statement" }, plain(claim.statement)), h("details", {}, h("summary", {}, `Rule and reason (${clipped(plain(claim.name), 60)})`), h("p", {}, plain(claim.rule)), h("p", {}, plain(claim.why)))),
      h("td", {}, plain(claim.where)), h("td", {}, plain(claim.printed)),
      h("td", {}, plain(claim.value) + (plain(claim.value).includes("[") ? "" : interval(claim))), h("td", { class: "number" }, plain(claim.n))));
    const filter = [["", `all ${claims.length}`], ...verdicts.map(verdict => [verdict, `${verdict}: ${claims.filter(claim => String(claim.verdict) === verdict).length}`])];
    const save1 = h("button", { type: "button", onclick: () => save("claims.csv", csv([["name", "verdict", "statement", "where", "printed", "value", "low", "high", "n", "why"], ...claims.map(claim => [claim.name, claim.verdict, claim.statement, claim.where, claim.printed, claim.value, ...(Array.isArray(claim.interval) ? claim.interval : [claim.interval, null]), claim.n, claim.why])]), "text/csv") }, "CSV", h("span", { class: "unseen" }, " of the claims"));
    return this.claims.replaceChildren(
      h("div", { class: "plot-head" }, h("h2", { id: "claims-title" }, "Claims"), h("div", { class: "tools" }, save1)),
      h("ul", { class: "chips" }, filter.map(([key, text]) => h("li", {}, h("button", { type: "button", "aria-pressed": String(state.verdict === key), onclick: () => go({ verdict: key }) }, clipped(text, 50))))),
      h("div", { class: "scroll", tabindex: 0, role: "region", "aria-label": "Claims" }, h("table", { class: "claims" }, h("caption", {}, "Each claim was judged by its rule, which was written before any result."), h("thead", {}, h("tr", {}, ["verdict", "claim", "where", "paper", "here", "n"].map(head => h("th", { scope: "col", class: head === "n" ? "number" : null }, head)))), h("tbody", {}, rows))));
  },
};
