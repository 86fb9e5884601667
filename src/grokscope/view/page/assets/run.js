// A run: all that was measured of it on one time axis, and its modes where its weights were read.
const NO_BAND =
  "No null band: it needs 20 untrained networks of this task and model. For a run with stored weights, grokscope report DIR --detail RUN computes them.";
function phasesOf(row) {
  const first = row.first ?? 0,
    last = row.last ?? first,
    grok = isNumber(row.grokked) ? row.grokked : null;
  const freed = isNumber(row.liberated) && (grok === null || row.liberated < grok) ? row.liberated : null,
    end = grok ?? last;
  const span = (label, role, from, to) => ({ label, kind: "span", role, source: "run", low: [from], high: [to] });
  const found = []; // where Phase 2 does not begin, there is nothing to tell Phase 1 from
  if (freed !== null)
    found.push(span("Phase 1, formation", "before", first, freed), span("Phase 2, liberation", "phase", freed, end));
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
  const before = name => name === "memorized" && memorizedBefore(row);
  return events.filter(([name]) => isNumber(row[name]) && !before(name)).map(([name, label]) => mark(row[name], label));
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

// Curves of groups of rows that are held out, by the end of their columns.
const heldOut = (log, end) =>
  Object.keys(log)
    .filter(name => name.endsWith(end) && !["train", "validation"].includes(name.slice(0, -end.length)))
    .map((name, i) => [name, name.slice(0, -end.length).replaceAll("_", " "), `line ${(i + 3) % 8}`]);

// How a run went, in a sentence or two.
function toldEvents(row) {
  const reached = (step, word, verb) =>
    isNumber(step) ? `${word} at step ${whole(step)}` : row.finished ? `did not ${verb}` : `has not ${word} yet`;
  const memorized = memorizedBefore(row)
      ? "had memorised before its fork"
      : reached(row.memorized, "memorised", "memorise"),
    lead = isNumber(row.lead) ? `: a lead of ${whole(row.lead)} steps` : "",
    flags = (row.sync_flags || []).length ? ` Synchronised ${row.sync_flags.join(", ")}.` : "",
    dips = row.dips
      ? ` (${counted(row.dips, "dip")} below one half after grokking, ${row.dips > 1 ? "the longest " : ""}of ${whole(row.longest_dip)} steps)`
      : "",
    early = row.stopped_early ? " It was stopped early after grokking, so leads of runs like it are biased." : "";
  const sync = row.basis ? "" : `, ${reached(row.sync, "synchronised", "synchronise")},`; // nothing to synchronise in
  return `It ${memorized}${sync} and ${reached(row.grokked, "grokked", "grok")}${lead}. Outcome: ${outcomeText(row.outcome)}${dips}.${row.stability_text ? ` ${row.stability_text}` : ""}${flags}${early}`;
}

// What mean-ablating the site of FSD costs, at the last checkpoint; undefined where it was not measured.
const lostAtSite = row =>
  (data.details[row.place]?.ablation || data.ablation[row.place] || []).find(
    one => one.component === row.site && one.method === "mean",
  )?.drop;

// How small a thing FSD may read: the answer's share of its site's variance, and what the network loses without it.
function toldShare(row) {
  const values = row.log.answer_share,
    percent = value => `${short(100 * value, 2)} %`,
    last = values[values.length - 1],
    place = isNumber(row.sync) ? row.log.step.indexOf(row.sync) : -1,
    lost = lostAtSite(row);
  if (!isNumber(last)) return `Share of the variance of the activations under FSD that depends on the ${row.by}.`;
  const then = place >= 0 && isNumber(values[place]) ? ` (${percent(values[place])} when it synchronised)` : "",
    cost = isNumber(lost)
      ? `; with its mean in its place the network loses ${(100 * lost).toFixed(1).replace("-", "−")} points of accuracy`
      : "; what the network loses with its mean in its place was not measured";
  return `${row.site ? `FSD is read at ${row.site}. ` : ""}At the last evaluation ${percent(last)} of this site's variance goes with the ${row.by}${then}${cost}.`;
}

const run = {
  ...insideNetwork,
  ...forecastOfRun,
  title: "A run",
  build() {
    this.heading = h("h1");
    this.unknown = h("p", { class: "alert", role: "status" });
    this.picker = h("div", { class: "controls" });
    this.facts = h("dl", { class: "facts" });
    this.summary = h("p", { class: "lede" });
    const about = () => nameOf(currentRun()),
      over = { height: 250, sync: "run", steps: true, about };
    this.accuracy = new Figure("accuracy", "Accuracy", over);
    this.fsd = new Figure("fsd", "Frequency synchronisation", over);
    this.share = new Figure("share", "Answer share", over);
    this.rank = new Figure("rank", "Median Fourier rank", over);
    this.norm = new Figure("norm", "Weight norm", over);
    this.loss = new Figure("loss", "Loss", over);
    this.error = new Figure("error", "Squared error over what counts as success", over);
    this.unread = h("p", { class: "note" });
    this.slider = h("input", {
      type: "range",
      id: "checkpoint",
      min: 0,
      step: 1,
      oninput: event => go({ at: String(this.found.steps[Number(event.target.value)]) }),
    });
    this.stepText = h("output", { for: "checkpoint" });
    this.histogram = new Figure("participation", "Participation over modes", { height: 320, about });
    this.heat = new Figure("heat", "Participation, mode × step", { height: 320, about });
    this.neurons = new Figure("neurons", "Neurons × modes", { height: 340, about });
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
      this.unknown,
      this.picker,
      this.summary,
      this.facts,
      h(
        "div",
        { class: "pair" },
        this.accuracy.root,
        this.error.root,
        this.fsd.root,
        this.rank.root,
        this.share.root,
        this.norm.root,
        this.loss.root,
      ),
      this.unread,
      h("p", { class: "note" }, HINT),
      this.buildFan(about),
      this.detail,
      this.noDetail,
      this.ablation,
    ];
  },
  update() {
    const row = currentRun(),
      rows = sorted(chosen()),
      place = rows.indexOf(row);
    this.heading.replaceChildren(h("bdi", { title: clipped(row.name, 300) }, shortName(row)));
    this.unknown.textContent =
      state.run && !data.byLink.has(state.run)
        ? `The address names the run ${clipped(state.run, 40)}, which is not on this page. This is another one.`
        : "";
    const near = by => (rows.length ? rows[(Math.max(place, 0) + by + rows.length) % rows.length].link : row.link);
    const key = `${row.link} ${rows.length} ${data.rows.length} ${rows[0]?.link}`;
    if (this.pickerKey !== key) {
      const focus = document.activeElement?.dataset.near;
      this.pickerKey = key;
      this.picker.replaceChildren(
        select(
          "Run",
          (place < 0 ? [row, ...rows] : rows).map(one => [one.link, nameOf(one)]),
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
    this.ahead(row);
    this.inside(row);
    this.ablated(row);
  },
  tell(row) {
    this.summary.textContent = row.begun ? toldEvents(row) : "It has not been evaluated yet.";
    const facts = [
      ["task", row.task],
      ["λ", short(row.weight_decay)],
      ["seeds", [...new Set([row.split_seed, row.init_seed, row.seed])].join(", ")],
      ["train fraction", short(row.train_fraction)],
      ["model", row.model],
      ["η", short(row.learning_rate)],
      ["steps", whole(row.steps)],
      ["precision", row.precision],
      ...(row.other ? [["other settings", row.other]] : []),
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
            ? h(
                "a",
                { href: address({ view: "run", run: parent.link, at: "" }), title: parent.name },
                clipped(nameOf(parent), 60),
              )
            : row.fork.parent,
          `, ${branch(row)}`,
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
      const without = row.basis && [this.fsd, this.rank].includes(figure);
      figure.root.hidden = !series.length && (without || [this.share, this.error].includes(figure));
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
        ...heldOut(log, "_accuracy"),
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
    this.unread.textContent = row.basis ? `FSD, rank and answer share are not defined: ${row.basis}.` : "";
    this.fsd.note.textContent = [
      log.fsd_mode ? `Dominant mode at the last evaluation: ${this.modeName(row)}.` : "",
      band || !log.fsd ? "" : NO_BAND,
    ]
      .filter(Boolean)
      .join(" ");
    show(
      this.error,
      "error over success",
      [
        ["validation_relative_error", "validation", "validation"],
        ["train_relative_error", "train", "train"],
      ],
      { log_y: true },
      [{ label: "success", kind: "horizontal", role: "null", source: "null", y: [1] }],
    );
    show(this.share, "share of variance", [["answer_share", "answer share", "grokked"]]);
    this.share.note.textContent = log.answer_share ? toldShare(row) : "";
    show(this.rank, "median rank", [["rank", "median rank", "rank"]]);
    show(this.norm, "‖W‖", [["norm", "‖W‖", "norm"]]);
    show(
      this.loss,
      row.loss,
      [["validation_loss", "validation", "validation"], ["train_loss", "train", "train"], ...heldOut(log, "_loss")],
      { log_y: true },
    );
  },
  modeName(row) {
    const mode = row.log.fsd_mode[row.log.fsd_mode.length - 1],
      irreps = data.irreps[row.task];
    if (!isNumber(mode)) return "none";
    if (!irreps?.[mode - 1]) return `frequency ${mode}`;
    return row.group ? `${irreps[mode - 1][0]}, dimension ${irreps[mode - 1][1]}` : `bits ${irreps[mode - 1][0]}`;
  },
};
