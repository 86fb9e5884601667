// Runs: a table whose rows drive every plot.
const PAGE = 200;
const HINT = "Drag across a plot to see some steps alone; double-click it to see all of them.";

function sorted(rows) {
  const sign = state.dir === "up" ? 1 : -1,
    key = state.sort in COLUMNS ? state.sort : "name",
    value = row => (key === "name" ? shortName(row) : TEXTS.has(key) ? cellOf(key, row).text : row[key]);
  return rows
    .map(row => [value(row), row])
    .sort(([x, a], [y, b]) => {
      const missing = (x === null || x === undefined) - (y === null || y === undefined);
      if (missing) return missing; // what was not reached stands last, whichever way
      const order = TEXTS.has(key) ? x.localeCompare(y, "en", { numeric: true }) : (x ?? 0) - (y ?? 0);
      return (
        sign * order || (a.forked ?? -1) - (b.forked ?? -1) || a.weight_decay - b.weight_decay || a.place - b.place
      );
    })
    .map(([, row]) => row);
}

const runs = {
  title: "Runs",
  limit: PAGE,
  build() {
    this.figure = new Figure("runs", "", { height: 320, steps: true });
    this.search = h("input", {
      type: "search",
      id: "filter",
      placeholder: "add_mod97 λ=1 seed<5",
      "aria-describedby": "filter-problem",
      autocomplete: "off",
      oninput: event => go({ q: event.target.value }),
    });
    this.controls = h("div", { class: "controls" });
    this.problem = h("p", { class: "alert", id: "filter-problem", role: "alert" });
    this.chooser = h("div", { class: "chooser" });
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
    this.legend = h("p", { class: "note" });
    const columns = ["name", ...Object.keys(COLUMNS), "id"],
      value = (row, name) => (name === "trigger" ? cellOf(name, row).text : row[name]);
    const download = csvButton(
      () => fileName("table of runs"),
      "the table",
      () => [
        columns.map(name => IN_TABLES[name] || name),
        ...sorted(chosen()).map(row => columns.map(name => value(row, name))),
      ],
    );
    download.id = "table-csv";
    return [
      h("h1", {}, "Runs"),
      h(
        "p",
        { class: "lede" },
        `Filter or tick rows: the plots of this page show no others. A filter has words, and comparisons such as λ>2, seed=3 or grokked=none. A run's name leads to its own page. ${HINT}`,
      ),
      h(
        "div",
        { class: "controls" },
        h("label", { class: "control wide" }, h("span", {}, "Filter"), this.search),
        this.controls,
      ),
      this.problem,
      this.figure.root,
      h("div", { class: "plot-head" }, this.counter, h("div", { class: "tools" }, this.chooser, download)),
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
      this.legend,
    ];
  },
  update() {
    const rows = sorted(filtered()),
      ids = selected();
    this.columns = shownColumns();
    if (this.search.value !== state.q) this.search.value = state.q;
    this.showControls();
    this.showPlot();
    this.showChooser();
    const problems = notUnderstood().map(({ part, problem }) => `${clipped(part, 40)} (${clipped(problem, 80)})`);
    this.problem.textContent = problems.length
      ? `Not understood, and left out of the filter: ${problems.join("; ")}. Fields are λ, seed, task, outcome, forked, memorised, synchronised, grokked, stable, lead, dips, last, η, fraction, model, study.`
      : "";
    this.counter.textContent = `${counted(rows.length, "run")} of ${whole(data.rows.length)}${ids.size ? `, ${whole(ids.size)} selected` : ""}`;
    this.legend.textContent = explainedMarks(rows);
    this.showHeads(rows, ids);
    this.rows.replaceChildren(...rows.slice(0, this.limit).map(row => this.line(row, ids)));
    this.more.hidden = rows.length <= this.limit;
  },
  showControls() {
    const options = values => [["", "all"], ...[...new Set(values)].sort().map(value => [value, value])];
    const quantities = data.columns.map(name => [name, titleOf(name)]);
    // Rebuilt only when their choices differ, so that none loses the focus while it is used.
    const key = JSON.stringify([
      state.task,
      state.outcome,
      state.y,
      state.by,
      state.forks,
      data.columns,
      data.rows.length,
    ]);
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
          ["configuration", "configuration"],
          ...Object.entries(GROUPINGS).map(([name, [text]]) => [name, text]),
        ],
        state.by,
        by => go({ by }),
        { id: "by" },
      ),
      data.rows.some(row => row.fork)
        ? tickBox("with forks", Boolean(state.forks), on => go({ forks: on ? "1" : "" }), { id: "with-forks" })
        : "",
      h(
        "button",
        { type: "button", class: "plain", onclick: () => go({ q: "", task: "", outcome: "", sel: "" }) },
        "Clear",
      ),
    );
    if (focused && this.controls.querySelector(`#${CSS.escape(focused)}`)) document.getElementById(focused).focus();
  },
  showPlot() {
    const name = data.columns.includes(state.y) ? state.y : data.columns[0] || DEFAULTS.y,
      rows = state.by === "none" ? chosen() : pooledRows(),
      known = state.by in GROUPINGS || state.by === "none" || state.by === "configuration",
      by = known ? state.by : rows.length < FEWEST ? "none" : "configuration",
      { lines, note } = grouped(rows, name, by),
      without = chosen().length - rows.length;
    const title = titleOf(name);
    this.figure.heading.textContent = `${title}${by === "none" ? "" : `, by ${by === "configuration" ? by : GROUPINGS[by][0]}`}`;
    this.figure.note.textContent = [note, without ? `${counted(without, "fork")} left out.` : ""]
      .filter(Boolean)
      .join(" ");
    this.figure.show(
      { x_label: "step", y_label: title, y_range: rangeOf(name), log_y: name.endsWith("loss"), series: lines },
      by === "none" ? logTable(rows, name) : () => groupTable(lines, name),
    );
  },
  // Which columns the table has; in the address, so that a link shows the same.
  showChooser() {
    const key = JSON.stringify(this.columns);
    if (this.chooserKey === key) return;
    this.chooserKey = key;
    const open = this.chooser.querySelector("details")?.open || false,
      focused = document.activeElement?.id;
    const box = name =>
      tickBox(
        COLUMNS[name].head,
        this.columns.includes(name),
        on =>
          go({
            cols: Object.keys(COLUMNS)
              .filter(one => (one === name ? on : this.columns.includes(one)))
              .join(","),
          }),
        { id: `column-${name}` },
      );
    const usual = h("button", { type: "button", onclick: () => go({ cols: "" }) }, "Those that vary");
    this.chooser.replaceChildren(
      h(
        "details",
        { open },
        h("summary", {}, "Columns"),
        h(
          "div",
          { class: "choices", role: "group", "aria-label": "Columns of the table" },
          Object.keys(COLUMNS).map(box),
          usual,
        ),
      ),
    );
    if (focused && this.chooser.querySelector(`#${CSS.escape(focused)}`)) document.getElementById(focused).focus();
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
      ...["name", ...this.columns].map(name =>
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
            name === "name" ? "run" : COLUMNS[name].head,
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
    const cell = name => {
      const { text, number, title, outcome } = cellOf(name, row);
      return h(
        "td",
        { class: number ? "number" : null, title: title || null, "data-field": name },
        outcome ? h("span", { class: "dot", "data-outcome": outcome }) : null,
        h("bdi", {}, text),
      );
    };
    return h(
      "tr",
      { class: tick.checked ? "ticked" : null, "data-link": row.link },
      h("td", {}, tick),
      h(
        "th",
        { scope: "row", "data-field": "name" },
        h(
          "a",
          { href: address({ view: "run", run: row.link, at: "" }), title: clipped(row.name, 300) },
          h("bdi", {}, shortName(row)),
        ),
      ),
      ...this.columns.map(cell),
    );
  },
};

// What a grouped plot draws: medians with the middle 80 % where there are enough runs, else the runs themselves.
const groupTable = (lines, name) => [
  ["group", "run", "step", `${name} (the run's, or the median)`, "low (10 %)", "high (90 %)"],
  ...lines.flatMap(line =>
    Array.from(line.x, (x, i) => [
      line.legend ?? line.label,
      line.tip ?? null,
      x,
      line.tip ? shownNumber(line.y[i]) : line.y[i],
      line.low ? line.low[i] : null,
      line.high ? line.high[i] : null,
    ]),
  ),
];
