// Groups: which irrep the neurons of each run agree on, over time.
const groups = {
  title: "Groups",
  build() {
    this.controls = h("div", { class: "controls" });
    this.fsd = new Figure("group-fsd", "FSD_gen");
    this.strips = new Figure("irreps", "Dominant irrep over time");
    this.table = h("div");
    this.none = h("p", { class: "empty" }, "There are no runs on groups here. Train one with: grokscope train S5 --seeds 0:2");
    this.some = h("div", {}, this.controls, this.fsd.root, this.strips.root, this.table);
    return [h("h1", {}, "Groups"), h("p", { class: "lede" }, "On a group that is not cyclic the modes are irreducible representations instead of frequencies. Each look asks which of them most neurons prefer."), this.none, this.some];
  },
  update() {
    const names = [...new Set(data.rows.filter(row => row.group).map(row => row.task))].sort(), any = names.length > 0;
    this.none.hidden = any;
    this.some.hidden = !any;
    if (!any) return;
    const name = names.includes(state.group) ? state.group : names[0], irreps = data.irreps[name] || [];
    const key = JSON.stringify([name, names]);
    if (this.key !== key) { this.key = key; this.controls.replaceChildren(select("Group", names.map(one => [one, one]), name, group => go({ group }), { id: "group" })); }
    const picked = chosen().filter(row => row.task === name), rows = (picked.length ? picked : data.rows.filter(row => row.task === name)).filter(row => row.begun), band = rows.length && data.nulls[rows[0].place];
    lines(this.fsd, { lines: rows.slice(0, MOST_LINES).filter(row => row.log.fsd).map((row, place) => ({ label: row.name, x: row.log.step, y: row.log.fsd, color: color(place), dash: dash(place) })), range: [-0.03, 1.03], height: 280, levels: band ? [{ ...band, label: `null band, 5–95 %: ${band.of}` }] : [], sync: "groups",
      rows: () => [["run", "step", "fsd"], ...rows.flatMap(row => Array.from(row.log.step, (step, i) => [row.name, step, row.log.fsd ? shownNumber(row.log.fsd[i]) : null]))] });
    const label = mode => irreps[mode - 1] ? `${irreps[mode - 1][0]}, d = ${irreps[mode - 1][1]}` : `mode ${mode}`, shown = rows.filter(row => row.log.fsd_mode).slice(0, 60);
    if (!shown.length) this.strips.empty("No dominant irrep was measured.");
    else {
      const steps = [...new Set(shown.flatMap(row => Array.from(row.log.step)))].sort((a, b) => a - b), at = shown.map(row => new Map(Array.from(row.log.step, (step, i) => [step, row.log.fsd_mode[i]])));
      const used = [...new Set(shown.flatMap(row => Array.from(row.log.fsd_mode).filter(isNumber)))].sort((a, b) => a - b);
      this.strips.note.textContent = "A row is a run; its colour says which irrep most neurons share at each look.";
      heat(this.strips, { columns: steps.length, rows: shown.length, value: (i, j) => { const mode = at[j].get(steps[i]); return isNumber(mode) ? mode : null; }, paint: mode => color(used.indexOf(mode)), xLabel: "step", yLabel: "run", xText: i => whole(steps[i]), yText: j => `s${shown[j].seed}`, height: Math.min(420, 80 + 26 * shown.length),
        about: `Dominant irreps of ${shown.length} runs`, data: () => [["run", "step", "irrep", "dimension"], ...shown.flatMap(row => Array.from(row.log.step, (step, i) => { const mode = row.log.fsd_mode[i], irrep = irreps[mode - 1]; return [row.name, step, irrep ? irrep[0] : isNumber(mode) ? `mode ${mode}` : null, irrep ? irrep[1] : null]; }))] });
      const draw = this.strips.draw;
      this.strips.set(() => { draw(); used.forEach((mode, place) => this.strips.legend.append(swatch(color(place), [], label(mode), 1).root)); }, this.strips.rows);
    }
    const last = mode => shown.filter(row => row.log.fsd_mode[row.log.fsd_mode.length - 1] === mode).length;
    this.table.replaceChildren(irreps.length ? table(`Irreps of ${clipped(name, 60)}; complex-conjugate pairs are one mode`, ["irrep", "dimension d", "functions", "dominant at the end in"], irreps.map(([text, d, size], i) => [text, { text: String(d), number: true }, { text: String(size), number: true }, { text: counted(last(i + 1), "run"), number: true }])) : "");
  },
};
