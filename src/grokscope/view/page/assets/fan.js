// Where a run is heading: its forecasts so far, each from what was known by then.
const fanRows = fan => [
  ["step", "probability of grokking", "by step", "10 % by", "50 % by", "90 % by"],
  ...fan.step.map((step, i) => [step, fan.probability[i], fan.last, fan.low[i], fan.middle[i], fan.high[i]]),
];

// What is known now, in words; of a run that has ended, what its forecasts were.
function toldForecast(row) {
  const fan = row.forecast;
  if (row.finished)
    return "It has ended. This is what the forecaster says of each step, from its evaluations up to then.";
  const advice = fan.advice ? ` Advice: ${fan.advice}.` : "";
  return `It ${fan.sentence}.${advice}`;
}

const forecastOfRun = {
  buildFan(about) {
    const over = { height: 250, sync: "run", steps: true, about };
    this.chance = new Figure("chance", "Probability of grokking", over);
    this.fan = new Figure("fan", "Forecast of the step at which it groks", over);
    this.told = h("p", { class: "note", id: "told-forecast" });
    this.based = h("p", { class: "note" });
    this.headed = h(
      "section",
      { "aria-labelledby": "heading-title" },
      h("h2", { id: "heading-title" }, "Where it is heading"),
      this.told,
      h("div", { class: "pair" }, this.chance.root, this.fan.root),
      this.based,
    );
    return this.headed;
  },
  ahead(row) {
    const fan = row.forecast;
    this.headed.hidden = !row.begun;
    if (!row.begun) return;
    this.chance.root.hidden = this.fan.root.hidden = !fan;
    this.told.textContent = fan
      ? toldForecast(row)
      : "A page has the forecasts of a part of many runs, those that have not ended first; grokscope forecast has all.";
    this.based.textContent = fan ? `Basis: ${fan.basis}.` : "";
    if (!fan) return;
    const top = 1.25 * Math.max(fan.last, row.grokked ?? 0),
      steps = [...row.log.step.filter(step => step < fan.last), fan.last],
      ends = [state.log ? steps.find(step => step > 0) : steps[0], fan.last],
      doubt = fan.outside.length ? `This may not hold for it: ${fan.outside.join("; ")}.` : "";
    this.chance.show(
      {
        x_label: "step",
        y_label: "probability",
        x_range: ends,
        y_range: SHARE,
        series: [curve(`groks by step ${whole(fan.last)}`, fan.step, fan.probability, "grokked"), ...marksOf(row)],
      },
      () => fanRows(fan),
    );
    this.chance.note.textContent = doubt;
    // What has no end lies above the plot.
    const high = fan.high.map(step => step ?? 10 * top),
      known = place => isNumber(fan.low[place]) && isNumber(fan.middle[place]);
    this.fan.show(
      {
        x_label: "step",
        y_label: "step of grokking",
        x_range: ends,
        y_range: [0, top],
        series: [
          {
            label: "80 % interval",
            kind: "band",
            role: "grokked",
            source: "run",
            x: fan.step,
            low: fan.low.map(step => step ?? 10 * top),
            high,
          },
          curve(
            "median",
            fan.step.filter((_, i) => known(i)),
            fan.middle.filter((_, i) => known(i)),
            "grokked",
          ),
          {
            label: "now",
            kind: "line",
            role: "null",
            source: "null",
            x: steps.filter(step => step > 0),
            y: steps.filter(step => step > 0),
          },
          ...(isNumber(row.grokked)
            ? [{ label: "it grokked", kind: "horizontal", role: "theory", source: "run", y: [row.grokked] }]
            : []),
          ...marksOf(row),
        ],
      },
      () => fanRows(fan),
    );
    this.fan.note.textContent =
      "Half of the runs like it grok by the median, and 80 % within the interval; what lies above the plot may never come.";
  },
};
