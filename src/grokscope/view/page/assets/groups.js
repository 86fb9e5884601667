// Groups: which irrep the neurons of each run share, over time.
const groups = {
  title: "Groups",
  isEmpty: () => !data.rows.some(row => row.group),
  build() {
    this.controls = h("div", { class: "controls" });
    this.fsd = new Figure("group-fsd", "FSD_gen", { height: 300, sync: "groups", steps: true });
    this.strips = new Figure("irreps", "Dominant irrep over time");
    this.table = h("div");
    this.none = h(
      "p",
      { class: "empty" },
      "There are no runs on groups here. Train one with: grokscope train S5 --seeds 0:2 --train-fraction 0.7 --out DIR",
    );
    this.some = h("div", {}, this.controls, this.fsd.root, this.strips.root, this.table);
    return [
      h("h1", {}, "Groups"),
      h(
        "p",
        { class: "lede" },
        "On a group that is not cyclic the modes are irreducible representations instead of frequencies. At each evaluation, the dominant one is that which most neurons prefer.",
      ),
      this.none,
      this.some,
    ];
  },
  update() {
    const names = [...new Set(data.rows.filter(row => row.group).map(row => row.task))].sort(),
      any = names.length > 0;
    this.none.hidden = any;
    this.some.hidden = !any;
    if (!any) return;
    const name = names.includes(state.group) ? state.group : names[0],
      irreps = data.irreps[name] || [],
      key = JSON.stringify([name, names]);
    if (this.key !== key) {
      this.key = key;
      this.controls.replaceChildren(
        select(
          "Group",
          names.map(one => [one, one]),
          name,
          group => go({ group }),
          { id: "group" },
        ),
      );
    }
    const picked = chosen().filter(row => row.task === name),
      rows = inOrder((picked.length ? picked : data.rows.filter(row => row.task === name)).filter(row => row.begun));
    const band = rows.length && data.nulls[rows[0].place],
      lines = curvesOf(rows.slice(0, MOST_LINES), "fsd"),
      last = Math.max(...rows.map(row => row.last));
    const level =
      band && lines.length
        ? [
            {
              label: `null band, 5–95 %: ${band.of}`,
              kind: "band",
              role: "null",
              source: "null",
              x: [0, last],
              low: [band.low, band.low],
              high: [band.high, band.high],
            },
          ]
        : [];
    this.fsd.show(
      { x_label: "step", y_label: "FSD_gen", y_range: SHARE, series: [...level, ...lines] },
      logTable(rows, "fsd"),
    );
    const shown = rows.filter(row => row.log.fsd_mode).slice(0, 60);
    this.irreps(shown, irreps);
    const final = mode => shown.filter(row => row.log.fsd_mode[row.log.fsd_mode.length - 1] === mode).length,
      right = text => ({ text: String(text), number: true });
    this.table.replaceChildren(
      irreps.length
        ? table(
            `Irreps of ${clipped(name, 60)}; complex-conjugate pairs are one mode`,
            ["irrep", "dimension d", "functions", "dominant at the end in"],
            irreps.map(([text, d, size], i) => [text, right(d), right(size), right(counted(final(i + 1), "run"))]),
          )
        : "",
    );
  },
  irreps(rows, irreps) {
    if (!rows.length) return this.strips.empty("No dominant irrep was measured.");
    const steps = [...new Set(rows.flatMap(row => Array.from(row.log.step)))].sort((a, b) => a - b),
      column = new Map(steps.map((step, i) => [step, i]));
    const used = [...new Set(rows.flatMap(row => Array.from(row.log.fsd_mode).filter(isNumber)))].sort((a, b) => a - b);
    const label = mode => (irreps[mode - 1] ? `${irreps[mode - 1][0]}, d = ${irreps[mode - 1][1]}` : `mode ${mode}`),
      names = labels(rows);
    const of = mode =>
      rows.flatMap((row, j) =>
        Array.from(row.log.fsd_mode).flatMap((one, i) => (one === mode ? [[column.get(row.log.step[i]), j, 1]] : [])),
      );
    this.strips.note.textContent =
      "A row is a run; its colour is the irrep that most neurons share at each evaluation.";
    return this.strips.show(
      {
        x_label: "step",
        y_label: "run",
        height: Math.min(440, 100 + 26 * rows.length),
        x_range: [-0.5, steps.length - 0.5],
        x_ticks: steps.map((step, i) => [i, whole(step)]),
        y_ticks: rows.map((_, j) => [j, names[j]]),
        y_range: [rows.length - 0.5, -0.5],
        series: used.map((mode, place) => cells(label(mode), of(mode), `line ${place}`)),
      },
      () => [
        ["run", "step", "irrep", "dimension"],
        ...rows.flatMap(row =>
          Array.from(row.log.step, (step, i) => {
            const mode = row.log.fsd_mode[i],
              irrep = irreps[mode - 1];
            return [row.name, step, irrep ? irrep[0] : isNumber(mode) ? `mode ${mode}` : null, irrep ? irrep[1] : null];
          }),
        ),
      ],
    );
  },
};
