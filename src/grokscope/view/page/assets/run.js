// A run: all that was measured of it on one time axis, and its modes where its weights were read.
const bytesOf = (text, kind) => {
  const letters = atob(text),
    bytes = new Uint8Array(letters.length);
  for (let i = 0; i < letters.length; i++) bytes[i] = letters.charCodeAt(i);
  return new kind(bytes.buffer);
};

function phasesOf(row) {
  const first = row.first ?? 0,
    last = row.last ?? first,
    grok = isNumber(row.grokked) ? row.grokked : null;
  const freed = isNumber(row.liberated) && (grok === null || row.liberated < grok) ? row.liberated : null,
    end = grok ?? last;
  const span = (label, role, from, to) => ({ label, kind: "span", role, source: "run", low: [from], high: [to] });
  const found = [span("Phase 1, formation", "before", first, freed ?? end)];
  if (freed !== null) found.push(span("Phase 2, liberation", "phase", freed, end));
  if (grok !== null) found.push(span("after grokking", "train", grok, last));
  return found.filter(phase => phase.high[0] > phase.low[0]);
}

function marksOf(row) {
  const events = [
    ["memorized", "memorised"],
    ["sync", "synchronised"],
    ["grokked", "grokked"],
    ["fired", "trigger"],
  ];
  return events.filter(([name]) => isNumber(row[name])).map(([name, label]) => mark(row[name], label));
}

const logRows = row => {
  const names = ["step", ...data.columns.filter(name => row.log[name])];
  return [
    names,
    ...Array.from(row.log.step, (step, i) =>
      names.map(name => (name === "step" ? step : shownNumber(row.log[name][i]))),
    ),
  ];
};

const cells = (label, found, role = "validation") => ({
  label,
  kind: "cells",
  role,
  source: "run",
  x: found.map(([x]) => x),
  y: found.map(([, y]) => y),
  depth: found.map(([, , depth]) => depth),
});

const run = {
  title: "A run",
  build() {
    this.heading = h("h1");
    this.picker = h("div", { class: "controls" });
    this.facts = h("dl", { class: "facts" });
    this.summary = h("p", { class: "lede" });
    const over = { height: 250, sync: "run", steps: true };
    this.accuracy = new Figure("accuracy", "Accuracy", over);
    this.fsd = new Figure("fsd", "Frequency synchronisation", over);
    this.share = new Figure("share", "Answer share", over);
    this.rank = new Figure("rank", "Median Fourier rank", over);
    this.norm = new Figure("norm", "Weight norm", over);
    this.loss = new Figure("loss", "Loss", over);
    this.slider = h("input", {
      type: "range",
      id: "checkpoint",
      min: 0,
      step: 1,
      oninput: event => go({ at: String(this.found.steps[Number(event.target.value)]) }),
    });
    this.stepText = h("output", { for: "checkpoint" });
    this.histogram = new Figure("participation", "Participation over modes", { height: 320 });
    this.heat = new Figure("heat", "Participation, mode × step", { height: 320 });
    this.neurons = new Figure("neurons", "Neurons × modes", { height: 340 });
    this.formulas = h("div");
    this.ablation = h("div");
    this.detail = h(
      "section",
      { class: "detail", "aria-labelledby": "detail-title" },
      h("h2", { id: "detail-title" }, "Inside the network"),
      h("label", { class: "control slider" }, h("span", {}, "Checkpoint"), this.slider, this.stepText),
      h("div", { class: "pair" }, this.histogram.root, this.heat.root),
      this.neurons.root,
      this.formulas,
    );
    this.noDetail = h("p", { class: "note" });
    return [
      this.heading,
      this.picker,
      this.summary,
      this.facts,
      h(
        "div",
        { class: "pair" },
        this.accuracy.root,
        this.fsd.root,
        this.share.root,
        this.rank.root,
        this.norm.root,
        this.loss.root,
      ),
      this.detail,
      this.noDetail,
      this.ablation,
    ];
  },
  update() {
    const row = currentRun(),
      rows = sorted(chosen()),
      place = rows.indexOf(row);
    this.heading.replaceChildren(h("bdi", {}, row.name));
    const near = by => (rows.length ? rows[(Math.max(place, 0) + by + rows.length) % rows.length].link : row.link);
    const key = `${row.link} ${rows.length} ${data.rows.length} ${rows[0]?.link}`;
    if (this.pickerKey !== key) {
      const focus = document.activeElement?.dataset.near;
      this.pickerKey = key;
      this.picker.replaceChildren(
        select(
          "Run",
          (place < 0 ? [row, ...rows] : rows).map(one => [one.link, one.name]),
          row.link,
          id => go({ run: id, at: "" }),
          { id: "run-picker" },
        ),
        h("button", { type: "button", "data-near": "-1", onclick: () => go({ run: near(-1), at: "" }) }, "← Previous"),
        h("button", { type: "button", "data-near": "1", onclick: () => go({ run: near(1), at: "" }) }, "Next →"),
      );
      if (focus) this.picker.querySelector(`[data-near="${focus}"]`).focus();
    }
    this.tell(row);
    this.curves(row);
    this.inside(row);
    this.ablated(row);
  },
  tell(row) {
    const reached = (step, word, not) => (isNumber(step) ? `${word} at step ${whole(step)}` : not);
    this.summary.textContent = row.begun
      ? `It ${reached(row.memorized, "memorised", "has not memorised")}, ${reached(row.sync, "synchronised", "has not synchronised")} and ${reached(row.grokked, "grokked", "has not grokked")}` +
        `${isNumber(row.lead) ? `: a lead of ${whole(row.lead)} steps` : ""}. Outcome: ${row.outcome}.${(row.sync_flags || []).length ? ` Synchronised ${row.sync_flags.join(", ")}.` : ""}${row.stopped_early ? " It was stopped early after grokking, so leads of runs like it are biased." : ""}`
      : "It has not been evaluated yet.";
    const facts = [
      ["task", row.task],
      ["λ", short(row.weight_decay)],
      ["seeds", [...new Set([row.split_seed, row.init_seed, row.seed])].join(", ")],
      ["train fraction", short(row.train_fraction)],
      ["model", row.model],
      ["η", short(row.learning_rate)],
      ["steps", whole(row.steps)],
      ["precision", row.precision],
      ["hash", row.id],
    ];
    const parent = row.fork && data.byLink.get(row.fork.parent);
    if (row.fork)
      facts.push([
        "fork of",
        h(
          "span",
          {},
          parent
            ? h("a", { href: address({ view: "run", run: parent.link, at: "" }) }, clipped(parent.name, 60))
            : row.fork.parent,
          ` ${branch(row).replace("fork ", "")}`,
        ),
      ]);
    this.facts.replaceChildren(
      ...facts.map(([name, value]) =>
        h(
          "div",
          {},
          h("dt", {}, name),
          h("dd", {}, value.nodeType ? value : h("bdi", {}, clipped(String(value), 300))),
        ),
      ),
    );
  },
  curves(row) {
    const log = row.log,
      around = [...phasesOf(row), ...marksOf(row)],
      band = data.nulls[row.place],
      ends = [row.first, row.last];
    const show = (figure, y_label, lines, more = {}, extra = []) => {
      const series = lines
        .filter(([name]) => log[name])
        .map(([name, label, role]) => curve(label, log.step, log[name], role));
      figure.root.hidden = !series.length && figure === this.share;
      figure.show(
        { x_label: "step", y_label, series: series.length ? [...extra, ...series, ...around] : [], ...more },
        () => logRows(row),
      );
    };
    const level = band
      ? [
          {
            label: `null band, 5–95 %: ${band.of}`,
            kind: "band",
            role: "null",
            source: "null",
            x: ends,
            low: [band.low, band.low],
            high: [band.high, band.high],
          },
        ]
      : [];
    show(
      this.accuracy,
      "accuracy",
      [
        ["validation_accuracy", "validation", "validation"],
        ["train_accuracy", "train", "train"],
      ],
      { y_range: SHARE },
    );
    show(
      this.fsd,
      row.group ? "FSD_gen" : "FSD",
      [["fsd", row.group ? "FSD_gen" : "FSD", "fsd"]],
      { y_range: SHARE },
      level,
    );
    this.fsd.note.textContent = log.fsd_mode ? `Dominant mode at the last evaluation: ${this.modeName(row)}.` : "";
    show(this.share, "share of variance", [["answer_share", "answer share", "grokked"]]);
    this.share.note.textContent =
      "Share of the variance of the activations that FSD is computed from which depends on the answer.";
    show(this.rank, "median rank", [["rank", "median rank", "rank"]]);
    show(this.norm, "‖W‖", [["norm", "‖W‖", "norm"]]);
    show(
      this.loss,
      "loss in nats",
      [
        ["validation_loss", "validation", "validation"],
        ["train_loss", "train", "train"],
      ],
      { log_y: true },
    );
  },
  modeName(row) {
    const mode = row.log.fsd_mode[row.log.fsd_mode.length - 1],
      irreps = data.irreps[row.task];
    if (!isNumber(mode)) return "none";
    return irreps?.[mode - 1] ? `${irreps[mode - 1][0]}, dimension ${irreps[mode - 1][1]}` : `frequency ${mode}`;
  },
  inside(row) {
    const found = data.details[row.place];
    this.detail.hidden = !found || typeof found === "string";
    const others = Object.keys(data.details).map(place => data.rows[place]);
    this.noDetail.hidden = !this.detail.hidden;
    this.noDetail.replaceChildren(
      typeof found === "string"
        ? `Its weights could not be read: ${found}`
        : "To see inside this network, write the report with --detail and its name.",
      ...(others.length
        ? [
            " Read in detail: ",
            ...others.flatMap(other => [
              h("a", { href: address({ run: other.link, at: "" }) }, clipped(other.name, 60)),
              " ",
            ]),
          ]
        : []),
    );
    if (this.detail.hidden) return;
    this.found = found;
    found.modeAt = found.modeAt || bytesOf(found.modes, Uint16Array);
    found.shareAt = found.shareAt || bytesOf(found.shares, Uint8Array);
    const wanted = found.steps.indexOf(Number(state.at)),
      place = state.at !== "" && wanted >= 0 ? wanted : found.steps.length - 1;
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
    const values = found.participation[place],
      count = values.length,
      best = values.indexOf(Math.max(...values)),
      high = Math.max(0.1, ...found.participation.flat());
    this.histogram.note.textContent = `Share of neurons at ${found.site} whose strongest ${what} it is, in the ${found.basis} basis. The line is chance, 1/${count}.`;
    const part = (label, role, places) => ({
        label,
        kind: "bars",
        role,
        source: "run",
        x: places.map(i => i + 1),
        y: places.map(i => values[i]),
      }),
      others = values.map((_, i) => i).filter(i => i !== best);
    const chance = { label: `chance, 1/${count}`, kind: "horizontal", role: "theory", source: "null", y: [1 / count] };
    this.histogram.show(
      {
        x_label: what,
        y_label: "share of neurons",
        x_range: [0.4, count + 0.6],
        y_range: [0, high * 1.05],
        x_ticks: found.labels.map((label, i) => [i + 1, label]),
        series: [
          part(`strongest: ${what} ${found.labels[best]}`, "chosen", [best]),
          part("others", "validation", others),
          chance,
        ],
      },
      () => [
        ["step", what, "participation"],
        ...values.map((value, i) => [found.steps[place], found.labels[i], value]),
      ],
    );
  },
  grid(found, place, what) {
    const high = Math.max(...found.participation.flat(), 1e-9),
      flat = found.participation.flatMap((row, i) => row.map((value, j) => [i, j, Math.sqrt(value / high)]));
    this.heat.note.textContent = `Depth grows with the square root of participation, up to ${short(high)}; the frame is the chosen checkpoint.`;
    const chosen = {
      label: "chosen checkpoint",
      kind: "span",
      role: "chosen",
      source: "run",
      low: [place - 0.5],
      high: [place + 0.5],
    };
    this.heat.show(
      {
        x_label: "step",
        y_label: what,
        x_ticks: found.steps.map((step, i) => [i, whole(step)]),
        y_ticks: found.labels.map((label, j) => [j, label]),
        y_range: [found.labels.length - 0.5, -0.5],
        series: [cells("participation", flat), chosen],
      },
      () => [
        [what, ...found.steps.map(step => `step ${step}`)],
        ...found.labels.map((label, j) => [label, ...found.steps.map((_, i) => found.participation[i][j])]),
      ],
    );
  },
  cloud(found, place, what) {
    const { neurons, top } = found,
      from = place * neurons * top,
      strongest = j => found.modeAt[from + j * top];
    const order = Array.from({ length: neurons }, (_, j) => j).sort(
      (a, b) => strongest(a) - strongest(b) || found.shareAt[from + b * top] - found.shareAt[from + a * top],
    );
    const ranks = Array.from({ length: top }, (_, k) => k),
      at = (j, k) => [found.modeAt[from + j * top + k], found.shareAt[from + j * top + k] / 255];
    this.neurons.note.textContent = `Each column is one of ${neurons} neurons, ordered by its strongest ${what}; depth is the share of its power, for its ${top} strongest modes.`;
    this.neurons.show(
      {
        x_label: "neuron, ordered",
        y_label: what,
        x_range: [-0.5, neurons - 0.5],
        y_ticks: found.labels.map((label, j) => [j, label]),
        y_range: [found.labels.length - 0.5, -0.5],
        series: [
          cells(
            "share of a neuron's power",
            order.flatMap((j, i) => ranks.map(k => [i, ...at(j, k)])),
          ),
        ],
      },
      () => [
        ["neuron", ...ranks.flatMap(k => [`${what} ${k + 1}`, `share ${k + 1}`])],
        ...order.map(j => [j, ...ranks.flatMap(k => [found.labels[at(j, k)[0]], Number(at(j, k)[1].toFixed(3))])]),
      ],
    );
  },
  written(found) {
    if (this.writtenOf === found) return;
    this.writtenOf = found;
    if (!found.formulas.length)
      return this.formulas.replaceChildren(
        h("p", { class: "note" }, "Formulas are written for cyclic groups, whose modes are frequencies."),
      );
    const most = 24,
      rows = found.formulas.map((text, neuron) => [
        { text: String(neuron), number: true },
        h("span", { class: "formula" }, text),
      ]);
    const box = h(
      "div",
      {},
      table(
        "What each neuron computes at the last checkpoint, as a sparse Fourier series of its mean activation over the answer s",
        ["neuron", "mean activation"],
        rows.slice(0, most),
        { class: "formulas" },
      ),
    );
    const more = h(
      "button",
      {
        type: "button",
        onclick: () => {
          box.replaceChildren(table("All neurons", ["neuron", "mean activation"], rows, { class: "formulas" }));
          more.remove();
        },
      },
      `Show all ${rows.length}`,
    );
    return this.formulas.replaceChildren(
      h(
        "div",
        { class: "plot-head" },
        h("h3", {}, "The neurons’ formulas"),
        h(
          "div",
          { class: "tools" },
          csvButton("formulas", "the formulas", () => [
            ["neuron", "formula"],
            ...found.formulas.map((text, j) => [j, text]),
          ]),
        ),
      ),
      box,
      rows.length > most ? more : "",
    );
  },
  ablated(row) {
    const detail = data.details[row.place],
      rows = detail?.ablation || data.ablation[row.place];
    if (!rows?.length) return this.ablation.replaceChildren();
    const points = value => ({
      text: isNumber(value) ? `${(100 * value).toFixed(1)}`.replace("-", "−") : DASH,
      number: true,
    });
    return this.ablation.replaceChildren(
      h(
        "div",
        { class: "plot-head" },
        h("h2", {}, "Ablation"),
        h(
          "div",
          { class: "tools" },
          csvButton("ablation", "the ablation", () => [
            ["component", "method", "accuracy drop", "validation drop"],
            ...rows.map(one => [one.component, one.method, one.drop, one.validation_drop]),
          ]),
        ),
      ),
      table(
        "Accuracy lost at the last checkpoint, in percentage points, where a component's output is replaced by zeros, its mean, or its value for another input",
        ["component", "replaced by", "all pairs", "validation pairs"],
        rows.map(one => [one.component, one.method, points(one.drop), points(one.validation_drop)]),
      ),
    );
  },
};
