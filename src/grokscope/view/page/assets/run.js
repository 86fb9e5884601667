// A run: all that was measured of it on one time axis, and its modes where its weights were read.
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

const run = {
  ...insideNetwork,
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
};
