// Inside the network: modes of a run's neurons at its checkpoints, their formulas, and ablation.
const bytesOf = (text, kind) => {
  const letters = atob(text),
    bytes = new Uint8Array(letters.length);
  for (let i = 0; i < letters.length; i++) bytes[i] = letters.charCodeAt(i);
  return new kind(bytes.buffer);
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

const insideNetwork = {
  inside(row) {
    const found = data.details[row.place];
    this.detail.hidden = !found || typeof found === "string";
    const others = Object.keys(data.details).map(place => data.rows[place]);
    this.noDetail.hidden = !this.detail.hidden;
    this.noDetail.replaceChildren(
      typeof found === "string"
        ? `Its inside is not shown: ${found}.`
        : `To see inside this network, write the report with --detail ${clipped(row.name, 80)}.`,
      ...(others.length
        ? [
            " Read in detail: ",
            ...others.flatMap(other => [
              h("a", { href: address({ run: other.link, at: "" }) }, clipped(nameOf(other), 60)),
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
    const ofGroup = found.dimensions.some(dimension => dimension > 1) ? "irrep" : "frequency",
      what = found.basis === "walsh" ? "set of bits" : ofGroup;
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
    this.heat.note.textContent = `Each column is a checkpoint. Depth grows with the square root of participation, up to ${short(high)}; dashed lines enclose the chosen checkpoint.`;
    const frame = { label: "", kind: "vertical", role: "chosen", source: "run", x: [place - 0.5, place + 0.5] };
    this.heat.show(
      {
        x_label: "step",
        y_label: what,
        x_ticks: found.steps.map((step, i) => [i, whole(step)]),
        y_ticks: found.labels.map((label, j) => [j, label]),
        y_range: [found.labels.length - 0.5, -0.5],
        series: [cells("participation", flat), frame],
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
    const count = found.formulas.length,
      number = value => ({ text: short(value), number: true }),
      percent = value => ({ text: isNumber(value) ? `${(100 * value).toFixed(0)} %` : DASH, number: true });
    const row = one => [
      { text: String(one.neuron), number: true },
      number(one.amplitude),
      number(one.r_squared),
      percent(one.share),
      one.left_out
        ? h(
            "details",
            { class: "formula" },
            h("summary", {}, `${one.strongest} + ${one.left_out} more`),
            h("p", {}, one.text),
          )
        : h("span", { class: "formula" }, one.text),
    ];
    const list = h("div"),
      show = some =>
        list.replaceChildren(
          table(
            "Mean activation over the answer s as a sparse Fourier series, at the last checkpoint; the largest amplitude first. R² is that of the whole series; the share is that of the variance over s in the three strongest waves.",
            ["neuron", "amplitude", "R²", "in three", "three strongest waves"],
            found.formulas.slice(0, some).map(row),
            { class: "formulas" },
          ),
          ...(some < count ? [h("button", { type: "button", onclick: () => show(count) }, `Show all ${count}`)] : []),
        );
    show(12);
    const varying = found.formulas.filter(one => isNumber(one.share)),
      shares = varying.map(one => one.share);
    return this.formulas.replaceChildren(
      h(
        "div",
        { class: "plot-head" },
        h("h3", {}, "The neurons’ formulas"),
        h(
          "div",
          { class: "tools" },
          csvButton(
            () => fileName(nameOf(currentRun()), "formulas"),
            "the formulas",
            () => [
              ["neuron", "amplitude", "r_squared", "share_of_three", "formula"],
              ...found.formulas.map(one => [one.neuron, one.amplitude, one.r_squared, one.share, one.text]),
            ],
          ),
        ),
      ),
      h(
        "p",
        { class: "note" },
        shares.length
          ? `${counted(varying.length, "neuron")} of ${whole(count)} vary with the answer; their three strongest waves hold ${(100 * median(shares)).toFixed(0)} % of that variance in the median neuron.`
          : "No neuron varies with the answer.",
      ),
      h("details", { class: "folded" }, h("summary", {}, "Show the formulas"), list),
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
          csvButton(
            () => fileName(nameOf(row), "ablation"),
            "the ablation",
            () => [
              ["component", "method", "accuracy drop", "validation drop"],
              ...rows.map(one => [one.component, one.method, one.drop, one.validation_drop]),
            ],
          ),
        ),
      ),
      table(
        "Accuracy lost at the last checkpoint, in percentage points, where a component's output is replaced by zeros, its mean, or its value for another input. attn0 and mlp0 are the branches of the first block, head0.1 its second head",
        ["component", "replaced by", "all rows", "validation rows"],
        rows.map(one => [one.component, one.method, points(one.drop), points(one.validation_drop)]),
      ),
    );
  },
};
