// A run: everything that was measured of it, on one time axis, and its modes where it was read in detail.
const bytesOf = (text, kind) => { const letters = atob(text), bytes = new Uint8Array(letters.length); for (let i = 0; i < letters.length; i++) bytes[i] = letters.charCodeAt(i); return new kind(bytes.buffer); };

function phasesOf(row) {
  const first = row.first ?? 0, last = row.last ?? first, grok = isNumber(row.grokked) ? row.grokked : null;
  const freed = isNumber(row.liberated) && (grok === null || row.liberated < grok) ? row.liberated : null, end = grok ?? last;
  const found = [{ from: first, to: freed ?? end, color: color(5), label: "Phase 1, formation" }];
  if (freed !== null) found.push({ from: freed, to: end, color: color(4), label: "Phase 2, liberation" });
  if (grok !== null) found.push({ from: grok, to: last, color: color(2), label: "after grokking" });
  return found.filter(phase => phase.to > phase.from);
}

function marksOf(row) {
  const events = [["memorized", "memorised"], ["sync", "synchronised"], ["grokked", "grokked"], ["fired", "trigger"]];
  return events.filter(([name]) => isNumber(row[name])).map(([name, label]) => ({ at: row[name], label }));
}

const logRows = row => {
  const names = ["step", ...data.columns.filter(name => row.log[name])];
  return [names, ...Array.from(row.log.step, (step, i) => names.map(name => name === "step" ? step : shownNumber(row.log[name][i])))];
};

const run = {
  title: "A run",
  build() {
    this.heading = h("h1");
    this.picker = h("div", { class: "controls" });
    this.facts = h("dl", { class: "facts" });
    this.story = h("p", { class: "lede" });
    this.accuracy = new Figure("accuracy", "Accuracy");
    this.fsd = new Figure("fsd", "Frequency synchronisation");
    this.rank = new Figure("rank", "Median Fourier rank");
    this.norm = new Figure("norm", "Weight norm");
    this.loss = new Figure("loss", "Loss");
    this.slider = h("input", { type: "range", id: "checkpoint", min: 0, step: 1, oninput: event => go({ at: String(this.found.steps[Number(event.target.value)]) }) });
    this.stepText = h("output", { for: "checkpoint" });
    this.histogram = new Figure("participation", "Participation over modes");
    this.heat = new Figure("heat", "Participation, mode × step");
    this.neurons = new Figure("neurons", "Neurons × modes");
    this.formulas = h("div");
    this.ablation = h("div");
    this.detail = h("section", { class: "detail", "aria-labelledby": "detail-title" }, h("h2", { id: "detail-title" }, "Inside the network"),
      h("label", { class: "control slider" }, h("span", {}, "Checkpoint"), this.slider, this.stepText), h("div", { class: "pair" }, this.histogram.root, this.heat.root), this.neurons.root, this.formulas);
    this.noDetail = h("p", { class: "note" });
    return [this.heading, this.picker, this.story, this.facts, h("div", { class: "pair" }, this.accuracy.root, this.fsd.root, this.rank.root, this.norm.root, this.loss.root), this.detail, this.noDetail, this.ablation];
  },
  update() {
    const row = currentRun(), rows = sorted(chosen()), place = rows.indexOf(row);
    this.heading.replaceChildren(h("bdi", {}, row.name));
    const near = by => rows.length ? rows[(Math.max(place, 0) + by + rows.length) % rows.length].link : row.link;
    const key = `${row.link} ${rows.length} ${data.rows.length} ${rows[0] && rows[0].link}`;
    if (this.pickerKey !== key) {
      const focus = document.activeElement && document.activeElement.dataset.near;
      this.pickerKey = key;
      this.picker.replaceChildren(select("Run", (place < 0 ? [row, ...rows] : rows).map(one => [one.link, one.name]), row.link, id => go({ run: id, at: "" }), { id: "run-picker" }),
        h("button", { type: "button", "data-near": "-1", onclick: () => go({ run: near(-1), at: "" }) }, "← Previous"), h("button", { type: "button", "data-near": "1", onclick: () => go({ run: near(1), at: "" }) }, "Next →"));
      if (focus) this.picker.querySelector(`[data-near="${focus}"]`).focus();
    }
    this.tell(row);
    this.curves(row);
    this.inside(row);
    this.ablated(row);
  },
  tell(row) {
    const came = (step, word, not) => isNumber(step) ? `${word} at step ${whole(step)}` : not;
    this.story.textContent = row.begun ? `It ${came(row.memorized, "memorised", "has not memorised")}, ${came(row.sync, "synchronised", "has not synchronised")} and ${came(row.grokked, "grokked", "has not grokked")}`
      + `${isNumber(row.lead) ? `: a lead of ${whole(row.lead)} steps` : ""}. ${row.finished ? "It ended" : "It stands"}: ${row.outcome}.${(row.sync_flags || []).length ? ` Synchronised ${row.sync_flags.join(", ")}.` : ""}${row.stopped_early ? " It was stopped early after grokking, so leads of runs like it are biased." : ""}` : "It has not been looked at yet.";
    const facts = [["task", row.task], ["λ", short(row.weight_decay)], ["seeds", [...new Set([row.split_seed, row.init_seed, row.seed])].join(", ")], ["train fraction", short(row.train_fraction)], ["model", row.model], ["η", short(row.learning_rate)], ["steps", whole(row.steps)], ["precision", row.precision], ["hash", row.id]];
    const parent = row.fork && data.byLink.get(row.fork.parent);
    if (row.fork) facts.push(["fork of", h("span", {}, parent ? h("a", { href: address({ view: "run", run: parent.link, at: "" }) }, clipped(parent.name, 60)) : row.fork.parent, ` ${branch(row).replace("fork ", "")}`)]);
    this.facts.replaceChildren(...facts.map(([name, value]) => h("div", {}, h("dt", {}, name), h("dd", {}, value.nodeType ? value : h("bdi", {}, clipped(String(value), 300))))));
  },
  curves(row) {
    const common = { shades: phasesOf(row), marks: marksOf(row), sync: "run", rows: () => logRows(row), height: 230 }, log = row.log, known = names => names.filter(([name]) => log[name]);
    const of = names => known(names).map(([name, label, place]) => ({ label, x: log.step, y: log[name], color: color(place), dash: dash(8 * (place % 4)) }));
    const band = data.nulls[row.place];
    lines(this.accuracy, { ...common, lines: of([["validation_accuracy", "validation", 0], ["train_accuracy", "train", 1]]), range: [-0.03, 1.03] });
    lines(this.fsd, { ...common, lines: of([["fsd", row.group ? "FSD_gen" : "FSD", 0]]), range: [-0.03, 1.03], levels: band ? [{ ...band, label: `null band, 5–95 %: ${band.of}` }] : [] });
    this.fsd.note.textContent = row.log.fsd_mode ? `Dominant mode at the last look: ${this.modeName(row)}.` : "";
    lines(this.rank, { ...common, lines: of([["rank", "median rank", 0]]) });
    lines(this.norm, { ...common, lines: of([["norm", "‖W‖", 0]]) });
    lines(this.loss, { ...common, lines: of([["validation_loss", "validation", 0], ["train_loss", "train", 1]]), logarithmic: true });
  },
  modeName(row) {
    const mode = row.log.fsd_mode[row.log.fsd_mode.length - 1], irreps = data.irreps[row.task];
    if (!isNumber(mode)) return "none";
    return irreps && irreps[mode - 1] ? `${irreps[mode - 1][0]}, dimension ${irreps[mode - 1][1]}` : `frequency ${mode}`;
  },
  inside(row) {
    const found = data.details[row.place];
    this.detail.hidden = !found || typeof found === "string";
    const others = Object.keys(data.details).map(place => data.rows[place]);
    this.noDetail.hidden = !this.detail.hidden;
    this.noDetail.replaceChildren(typeof found === "string" ? `Its weights could not be read: ${found}` : "To look inside this network, make the report with --detail and its name.",
      ...(others.length ? [" Read in detail: ", ...others.flatMap(other => [h("a", { href: address({ run: other.link, at: "" }) }, clipped(other.name, 60)), " "])] : []));
    if (this.detail.hidden) return;
    this.found = found;
    found.modeAt = found.modeAt || bytesOf(found.modes, Uint16Array);
    found.shareAt = found.shareAt || bytesOf(found.shares, Uint8Array);
    const wanted = found.steps.indexOf(Number(state.at)), place = state.at !== "" && wanted >= 0 ? wanted : found.steps.length - 1;
    this.slider.max = found.steps.length - 1;
    this.slider.value = place;
    this.slider.setAttribute("aria-valuetext", `step ${found.steps[place]}`);
    this.stepText.textContent = `step ${whole(found.steps[place])}`;
    const what = found.dimensions.some(dimension => dimension > 1) ? "irrep" : "frequency";
    this.bars(found, place, what);
    this.grid(found, place, what);
    this.cloud(found, place, what);
    this.written(found);
  },
  bars(found, place, what) {
    const values = found.participation[place], count = values.length, best = values.indexOf(Math.max(...values));
    this.histogram.note.textContent = `Share of neurons at ${found.site} whose strongest ${what} it is, in the ${found.basis} basis. The line is chance, 1/${count}.`;
    this.histogram.set(() => {
      const every = Math.ceil(count / 12), high = Math.max(0.1, ...found.participation.flat());
      const plot = axes(this.histogram, { x: [0.5, count + 0.5], y: [0, high * 1.05], xLabel: what, yLabel: "participation", height: 300, xTicks: count > 12 || what === "frequency" ? values.map((_, i) => i + 1).filter(i => i % every === 0) : [],
        about: `Most neurons (${short(values[best])}) share ${what} ${found.labels[best]} at step ${found.steps[place]}` });
      values.forEach((value, i) => plot.svg.append(s("rect", { "data-bar": i, x: plot.X(i + 0.6), width: Math.max(plot.X(i + 1.4) - plot.X(i + 0.6), 1), y: plot.Y(value), height: plot.bottom - plot.Y(value), fill: i === best ? ink("c1") : ink("c0") }, s("title", {}, `${what} ${found.labels[i]}: ${short(value)}`))));
      if (what === "irrep" && count <= 12) values.forEach((_, i) => plot.svg.append(s("text", { x: plot.X(i + 1), y: plot.bottom + 18, "text-anchor": "middle", fill: ink("soft"), "font-size": 11 }, clipped(found.labels[i], 12))));
      plot.svg.append(s("line", { x1: plot.left, x2: plot.right, y1: plot.Y(1 / count), y2: plot.Y(1 / count), stroke: ink("ink"), "stroke-dasharray": "4 3" }));
    }, () => [["step", what, "participation"], ...values.map((value, i) => [found.steps[place], found.labels[i], value])]);
  },
  grid(found, place, what) {
    const high = Math.max(...found.participation.flat(), 1e-9);
    this.heat.note.textContent = "Depth grows with the square root of participation; the frame is the chosen checkpoint.";
    heat(this.heat, { columns: found.steps.length, rows: found.labels.length, value: (i, j) => Math.sqrt(found.participation[i][j] / high), top: high, mark: place, xLabel: "step", yLabel: what, xText: i => whole(found.steps[i]), yText: j => found.labels[j], height: 300,
      about: `Participation of ${found.labels.length} modes at ${found.steps.length} checkpoints`, data: () => [[what, ...found.steps.map(step => `step ${step}`)], ...found.labels.map((label, j) => [label, ...found.steps.map((_, i) => found.participation[i][j])])] });
  },
  cloud(found, place, what) {
    const { neurons, top } = found, from = place * neurons * top, strongest = j => found.modeAt[from + j * top];
    const order = Array.from({ length: neurons }, (_, j) => j).sort((a, b) => strongest(a) - strongest(b) || found.shareAt[from + b * top] - found.shareAt[from + a * top]);
    const cells = order.map(j => new Map(Array.from({ length: top }, (_, k) => [found.modeAt[from + j * top + k], found.shareAt[from + j * top + k] / 255])));
    this.neurons.note.textContent = `Each column is one of ${neurons} neurons, ordered by its strongest ${what}; depth is the share of its power, for its ${top} strongest modes.`;
    heat(this.neurons, { columns: neurons, rows: found.labels.length, value: (i, j) => cells[i].get(j) ?? null, xLabel: "neuron, ordered", yLabel: what, xText: i => String(i), yText: j => found.labels[j], height: 340,
      about: `The strongest modes of ${neurons} neurons at step ${found.steps[place]}`,
      data: () => [["neuron", ...Array.from({ length: top }, (_, k) => [`${what} ${k + 1}`, `share ${k + 1}`]).flat()], ...order.map(j => [j, ...Array.from({ length: top }, (_, k) => [found.labels[found.modeAt[from + j * top + k]], Number((found.shareAt[from + j * top + k] / 255).toFixed(3))]).flat()])] });
  },
  written(found) {
    if (this.writtenOf === found) return;
    this.writtenOf = found;
    if (!found.formulas.length) return this.formulas.replaceChildren(h("p", { class: "note" }, "Formulas are written for cyclic groups, whose modes are frequencies."));
    const most = 24, rows = found.formulas.map((text, neuron) => [{ text: String(neuron), number: true }, h("span", { class: "formula" }, text)]);
    const box = h("div", {}, table("What each neuron computes at the last checkpoint, as a sparse Fourier series of its mean activation over the answer s", ["neuron", "mean activation"], rows.slice(0, most), { class: "formulas" }));
    const more = h("button", { type: "button", onclick: () => { box.replaceChildren(table("All neurons", ["neuron", "mean activation"], rows, { class: "formulas" })); more.remove(); } }, `Show all ${rows.length}`);
    return this.formulas.replaceChildren(h("div", { class: "plot-head" }, h("h3", {}, "The neurons’ formulas"), h("div", { class: "tools" }, h("button", { type: "button", onclick: () => save("formulas.csv", csv([["neuron", "formula"], ...found.formulas.map((text, j) => [j, text])]), "text/csv") }, "CSV", h("span", { class: "unseen" }, " of the formulas")))), box, rows.length > most ? more : "");
  },
  ablated(row) {
    const detail = data.details[row.place], rows = (detail && detail.ablation) || data.ablation[row.place];
    if (!rows || !rows.length) return this.ablation.replaceChildren();
    const points = value => ({ text: isNumber(value) ? `${(100 * value).toFixed(1)}`.replace("-", "−") : DASH, number: true });
    return this.ablation.replaceChildren(h("div", { class: "plot-head" }, h("h2", {}, "Ablation"), h("div", { class: "tools" }, h("button", { type: "button", onclick: () => save("ablation.csv", csv([["component", "method", "accuracy drop", "validation drop"], ...rows.map(one => [one.component, one.method, one.drop, one.validation_drop])]), "text/csv") }, "CSV", h("span", { class: "unseen" }, " of the ablation")))),
      table("Accuracy lost at the last checkpoint, in percentage points, where a component gives zeros, its mean, or another input’s value", ["component", "gives", "all pairs", "validation pairs"], rows.map(one => [one.component, one.method, points(one.drop), points(one.validation_drop)])));
  },
};
