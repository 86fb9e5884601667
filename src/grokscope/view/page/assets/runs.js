// Runs: a table whose rows drive every plot.
const PAGE = 200,
  MOST_LINES = 40;
const HEADS = [
  ["name", "run"],
  ["task", "task"],
  ["seed", "seed"],
  ["weight_decay", "λ"],
  ["forked", "fork"],
  ["outcome", "outcome"],
  ["memorized", "memorised"],
  ["sync", "synchronised"],
  ["grokked", "grokked"],
  ["lead", "lead"],
  ["last", "last step"],
];
const TEXTS = new Set(["name", "task", "outcome"]);

function sorted(rows) {
  const sign = state.dir === "up" ? 1 : -1,
    key = HEADS.some(([name]) => name === state.sort) ? state.sort : "name";
  return [...rows].sort((a, b) => {
    const [x, y] = [a[key], b[key]],
      missing = (x === null || x === undefined) - (y === null || y === undefined);
    if (missing) return missing; // what was not reached stands last, whichever way
    return (
      sign * (TEXTS.has(key) ? String(x).localeCompare(String(y), "en", { numeric: true }) : (x ?? 0) - (y ?? 0)) ||
      a.place - b.place
    );
  });
}

// What is drawn of rows: each for itself, or the medians of groups.
function grouped(rows, name, by) {
  const known = rows.filter(row => row.log[name]);
  if (by === "none") return curvesOf(known.slice(0, MOST_LINES), name);
  const groups = new Map(),
    key = GROUPINGS[by][1];
  for (const row of known) groups.set(key(row), [...(groups.get(key(row)) || []), row]);
  return [...groups]
    .sort((a, b) => a[0].localeCompare(b[0], "en", { numeric: true }))
    .slice(0, 16)
    .map(([label, members], place) => {
      const found = pooled(members.map(row => ({ x: row.log.step, y: row.log[name] })));
      return curve(`${clipped(label, 50)} (n = ${members.length})`, found.x, found.y, `line ${place}`, {
        low: found.low,
        high: found.high,
      });
    });
}

const runs = {
  title: "Runs",
  limit: PAGE,
  build() {
    this.figure = new Figure("runs", "", { height: 320, steps: true });
    this.search = h("input", {
      type: "search",
      id: "filter",
      placeholder: "add_mod97 λ=1 seed<5 …",
      autocomplete: "off",
      oninput: event => go({ q: event.target.value }),
    });
    this.controls = h("div", { class: "controls" });
    this.counter = h("p", { class: "counter", role: "status" });
    this.heads = h("tr");
    this.rows = h("tbody");
    this.more = h(
      "button",
      {
        type: "button",
        onclick: () => {
          this.limit += PAGE;
          this.update();
        },
      },
      "Show more",
    );
    const download = csvButton("runs", "the table", () => [
      HEADS.map(([name]) => name),
      ...sorted(chosen()).map(row => HEADS.map(([name]) => row[name])),
    ]);
    download.id = "table-csv";
    return [
      h("h1", {}, "Runs"),
      h(
        "p",
        { class: "lede" },
        "Filter or tick rows: every plot of this page shows those and no others. A run's name leads to its own page.",
      ),
      h(
        "div",
        { class: "controls" },
        h("label", { class: "control wide" }, h("span", {}, "Filter"), this.search),
        this.controls,
      ),
      this.figure.root,
      h("div", { class: "plot-head" }, this.counter, h("div", { class: "tools" }, download)),
      h(
        "div",
        { class: "scroll", tabindex: 0, role: "region", "aria-label": "Runs" },
        h(
          "table",
          { class: "runs" },
          h("caption", { class: "unseen" }, "Runs; a heading sorts"),
          h("thead", {}, this.heads),
          this.rows,
        ),
      ),
      this.more,
    ];
  },
  update() {
    const rows = sorted(filtered()),
      ids = selected(),
      drawn = chosen();
    if (this.search.value !== state.q) this.search.value = state.q;
    this.showControls();
    this.showPlot(drawn);
    const unknown = notUnderstood()
      .map(word => clipped(word, 40))
      .join(", ");
    this.counter.textContent = `${counted(rows.length, "run")} of ${whole(data.rows.length)}${ids.size ? `, ${whole(ids.size)} selected` : ""}${unknown ? `; not understood: ${unknown} (fields: λ, seed, task, outcome, forked, grokked, …)` : ""}`;
    this.showHeads(rows, ids);
    this.rows.replaceChildren(...rows.slice(0, this.limit).map(row => this.line(row, ids)));
    this.more.hidden = rows.length <= this.limit;
  },
  showControls() {
    const options = values => [["", "all"], ...[...new Set(values)].sort().map(value => [value, value])];
    const quantities = data.columns.map(name => [name, TITLES[name] || name]);
    // Rebuilt only when their choices differ, so that none loses the focus while it is used.
    const key = JSON.stringify([state.task, state.outcome, state.y, state.by, data.columns, data.rows.length]);
    if (this.controlsKey === key) return;
    this.controlsKey = key;
    const focused = document.activeElement?.id;
    this.controls.replaceChildren(
      select("Task", options(data.rows.map(row => row.task)), state.task, task => go({ task }), { id: "task" }),
      select("Outcome", options(data.rows.map(row => row.outcome)), state.outcome, outcome => go({ outcome }), {
        id: "outcome",
      }),
      select("Show", quantities, state.y, y => go({ y }), { id: "quantity" }),
      select(
        "Aggregate by",
        [
          ["auto", "automatic"],
          ["none", "each run"],
          ...Object.entries(GROUPINGS).map(([name, [text]]) => [name, text]),
        ],
        state.by,
        by => go({ by }),
        { id: "by" },
      ),
      h(
        "button",
        { type: "button", class: "plain", onclick: () => go({ q: "", task: "", outcome: "", sel: "" }) },
        "Clear",
      ),
    );
    if (focused && this.controls.querySelector(`#${CSS.escape(focused)}`)) document.getElementById(focused).focus();
  },
  showPlot(rows) {
    const name = data.columns.includes(state.y) ? state.y : data.columns[0] || DEFAULTS.y,
      by =
        state.by === "auto" || !(state.by in GROUPINGS || state.by === "none")
          ? rows.length > 12
            ? "task"
            : "none"
          : state.by;
    const found = grouped(rows, name, by);
    this.figure.heading.textContent = `${TITLES[name] || name}${by === "none" ? "" : `, by ${GROUPINGS[by][0]}`}`;
    this.figure.note.textContent =
      by === "none"
        ? rows.length > MOST_LINES
          ? `The first ${MOST_LINES} of ${whole(rows.length)} runs; filter, select or aggregate to see others.`
          : ""
        : "Line: median over the runs; band: the middle 80 %; n: runs in the group.";
    this.figure.show(
      {
        x_label: "step",
        y_label: TITLES[name] || name,
        y_range: rangeOf(name),
        log_y: name.endsWith("loss"),
        series: found,
      },
      by === "none"
        ? logTable(rows, name)
        : () => [
            ["group", "step", "median", "low (10 %)", "high (90 %)"],
            ...found.flatMap(line => line.x.map((x, i) => [line.label, x, line.y[i], line.low[i], line.high[i]])),
          ],
    );
  },
  showHeads(rows, ids) {
    const all = rows.length > 0 && rows.every(row => ids.has(row.link));
    const tick = h("input", {
      type: "checkbox",
      "aria-label": "Select all rows shown",
      onchange: () => go({ sel: all ? "" : rows.map(row => row.link).join(",") }),
    });
    tick.checked = all;
    this.heads.replaceChildren(
      h("td", {}, tick),
      ...HEADS.map(([name, text]) =>
        h(
          "th",
          {
            scope: "col",
            class: TEXTS.has(name) ? null : "number",
            "aria-sort": state.sort === name ? (state.dir === "up" ? "ascending" : "descending") : null,
          },
          h(
            "button",
            {
              type: "button",
              "data-sort": name,
              onclick: () => {
                go({ sort: name, dir: state.sort === name && state.dir === "up" ? "down" : "up" });
                this.heads.querySelector(`[data-sort="${name}"]`).focus();
              },
            },
            text,
            h(
              "span",
              { "aria-hidden": "true", class: "arrow" },
              state.sort === name ? (state.dir === "up" ? " ▲" : " ▼") : "",
            ),
          ),
        ),
      ),
    );
  },
  line(row, ids) {
    const tick = h("input", {
      type: "checkbox",
      "aria-label": `Select ${clipped(row.name, 60)}`,
      onchange: event => {
        const next = selected();
        if (event.target.checked) next.add(row.link);
        else next.delete(row.link);
        go({ sel: [...next].join(",") });
      },
    });
    tick.checked = ids.has(row.link);
    const number = (value, title) => h("td", { class: "number", title: title || null }, whole(value));
    return h(
      "tr",
      { class: tick.checked ? "ticked" : null, "data-link": row.link },
      h("td", {}, tick),
      h(
        "th",
        { scope: "row" },
        h(
          "a",
          { href: address({ view: "run", run: row.link, at: "" }), title: clipped(row.name, 300) },
          h("bdi", {}, row.name),
        ),
      ),
      h("td", { title: clipped(row.task, 300) }, h("bdi", {}, row.task)),
      h("td", { class: "number" }, String(row.seed)),
      h("td", { class: "number" }, short(row.weight_decay)),
      number(row.forked),
      h("td", {}, h("span", { class: "dot", "data-outcome": row.outcome }), row.outcome),
      number(row.memorized),
      number(row.sync, (row.sync_flags || []).join(", ")),
      number(row.grokked),
      number(
        row.lead,
        [row.lead_status, row.stopped_early ? "stopped early: leads are biased" : ""].filter(Boolean).join("; "),
      ),
      number(row.last, row.stopped_early ? "stopped early after grokking" : ""),
    );
  },
};
