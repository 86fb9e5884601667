// Overview: a study's message, what was run, how far it is, how it ended, whether synchronisation came first, claims.
// How much the dips of † (below one half) amount to; those of *stable* are below 95 % and stand in its sentence.
function dipped(rows) {
  const those = rows.filter(row => row.dips > 0);
  if (!those.length) return "";
  const counts = those.map(row => row.dips),
    most = Math.max(...counts),
    each =
      those.length > 1 ? `a median of ${short(median(counts))} each, at most ${whole(most)}` : counted(most, "dip");
  return `Dips below one half: ${counted(those.length, "run")}, ${each}; the longest lasted ${whole(Math.max(...those.map(row => row.longest_dip)))} steps.`;
}

// How many stayed grokked for 2,000 steps, of those that were seen for as long.
function stayed(rows) {
  const seen = rows.filter(row => row.stability === "stable" || row.stability === "not_stable"),
    open = rows.filter(row => row.stability === "censored").length;
  if (!seen.length) return "";
  const stable = seen.filter(row => row.stability === "stable").length;
  return `Stable: ${whole(stable)} of ${counted(seen.length, "run")} that grokked stayed so for 2,000 steps${open ? `; ${counted(open, "run")} ended too early to tell` : ""}.`;
}

const mark = (at, text) => ({ label: text, kind: "vertical", role: "theory", source: "run", x: [at], texts: [text] });

// Medians of groups that must not be mixed: one number for one group, and their range for several.
function medians(rows, name) {
  const found = groupsOf(rows.filter(row => isNumber(row[name]))).map(group =>
    median(group.members.map(row => row[name])),
  );
  const ends = found.length ? [...new Set([Math.min(...found), Math.max(...found)].map(whole))] : [DASH];
  return { text: ends.join(" to "), groups: found.length };
}

const duration = seconds => {
  const [hours, minutes] = [Math.floor(seconds / 3600), Math.floor((seconds % 3600) / 60)];
  if (hours) return `${whole(hours)} h ${minutes} min`;
  return minutes ? `${minutes} min ${Math.floor(seconds % 60)} s` : `${Math.ceil(seconds)} s`;
};

const tile = (name, value, note) =>
  h("div", {}, h("dt", {}, name), h("dd", {}, h("strong", {}, value), h("small", {}, note)));

const [FEWEST_BARS, MOST_BARS] = [6, 24]; // of the picture of outcomes
const CURVES = ["validation_accuracy", "train_accuracy", "fsd", "validation_loss"]; // shown until something groks

// How many synchronised before they grokked; of several configurations their shares, since pooled they mean nothing.
function firstShare(rows) {
  const groups = groupsOf(rows).map(({ members }) => members),
    count = members => members.filter(row => row.lead > 0).length;
  if (groups.length === 1) return `${whole(count(rows))} of ${whole(rows.length)}`;
  const shares = groups.map(members => Math.round((100 * count(members)) / members.length));
  return `${Math.min(...shares)} to ${Math.max(...shares)} %`;
}

const overview = {
  ...claimsSection,
  title: "Overview",
  build() {
    this.summary = h("p", { class: "lede" });
    this.tiles = h("dl", { class: "tiles" });
    this.progress = h("dl", { class: "tiles", id: "progress" });
    this.outcomes = new Figure("outcomes", "How the runs ended", { height: 260 });
    this.headline = new Figure("headline", "Around grokking: synchronisation and accuracy", { height: 320 });
    this.leads = new Figure("leads", "Lead of synchronisation over grokking");
    this.curves = CURVES.map(
      name => new Figure(`all-${name}`, `${TITLES[name]} of all runs`, { height: 280, sync: "all", steps: true }),
    );
    this.message = h("section", { class: "message", "aria-label": "What the runs say" });
    this.verdicts = h("div");
    this.claims = h("section", { "aria-labelledby": "claims-title" });
    this.title2 = h("h1", {}, "");
    this.grokking = h("div", { class: "pair" }, this.headline.root, this.leads.root);
    this.waiting = h("p", { class: "empty" }, "No run has been evaluated yet.");
    this.training = h("div", { class: "pair" }, ...this.curves.map(figure => figure.root));
    return [
      this.title2,
      this.message,
      this.summary,
      this.verdicts,
      this.progress,
      this.tiles,
      this.waiting,
      this.training,
      this.grokking,
      this.outcomes.root,
      this.claims,
    ];
  },
  update() {
    const rows = chosen(),
      some = pooledRows(),
      groks = some.filter(row => isNumber(row.grokked));
    this.title2.textContent = data.title;
    this.showSummary(rows);
    this.showProgress();
    const led = groks.filter(row => !row.fork && (row.lead !== null || row.lead_status === "grokked without it"));
    this.showTiles(some, groks, led);
    this.training.hidden = groks.length > 0;
    this.grokking.hidden = groks.length === 0;
    this.tiles.hidden = groks.length === 0 && !this.progress.hidden;
    this.waiting.hidden = some.some(row => row.begun);
    this.showCurves(some);
    this.outcomes.root.hidden = !some.some(row => row.finished);
    this.showOutcomes(some);
    this.showHeadline(groks.filter(row => !row.fork && row.log.fsd));
    this.showLeads(led);
    this.showMessage();
    this.showClaims();
  },
  showSummary(rows) {
    const tasks = [...new Set(rows.map(row => row.task))],
      decays = [...new Set(rows.map(row => row.weight_decay))].filter(isNumber).sort((a, b) => a - b),
      steps = rows.reduce((sum, row) => sum + (row.last ?? 0) - (row.fork ? row.fork.step : 0), 0),
      part = rows.length < data.rows.length ? ` (of ${whole(data.rows.length)}; the others are filtered out)` : "",
      more = tasks.length > 6 ? ` and ${tasks.length - 6} more` : "";
    this.summary.textContent =
      `${counted(rows.length, "run")}${part} of ${counted(tasks.length, "task")}: ${tasks
        .slice(0, 6)
        .map(task => clipped(task, 40))
        .join(", ")}${more}. ` +
      `Weight decay ${decays.length > 1 ? `from ${short(decays[0])} to ${short(decays[decays.length - 1])}` : short(decays[0])}, ${counted(rows.filter(row => row.fork).length, "fork")}, ${whole(Math.max(steps, 0))} optimiser steps in all.`;
  },
  // Of the whole folder, while it is trained: what `grokscope watch` shows.
  showProgress() {
    const now = liveProgress;
    this.progress.hidden = !now || now.ended === now.runs;
    if (this.progress.hidden) return;
    const bar = h("progress", { max: 1, value: now.share, "aria-label": "Steps taken" });
    this.progress.replaceChildren(
      tile("runs that have ended", `${whole(now.ended)} of ${whole(now.runs)}`, "of the whole folder"),
      tile("steps taken", `${Math.floor(100 * now.share + 1e-9)} %`, bar),
      tile(
        "speed",
        isNumber(now.rate) ? `${short(now.rate)} steps/s` : DASH,
        isNumber(now.rate) ? "of all runs together" : "no evaluations lately",
      ),
      tile("time left", isNumber(now.seconds_left) ? duration(now.seconds_left) : DASH, "if no run ends early"),
    );
  },
  showTiles(rows, groks, led) {
    const grok = medians(groks, "grokked"),
      lead = medians(led, "lead"),
      never = led.filter(row => !isNumber(row.lead)).length,
      cut = led.filter(row => row.stopped_early).length,
      forks = chosen().length - rows.length,
      of = (count, what) => (count > 1 ? `medians of ${counted(count, "configuration")}` : what);
    this.tiles.replaceChildren(
      tile(
        "grokked",
        `${whole(groks.length)} of ${whole(rows.length)}`,
        `reached 95 % validation accuracy${forks ? `; ${counted(forks, "fork")} left out` : ""}`,
      ),
      tile("median step of grokking", grok.text, of(grok.groups, `of the ${whole(groks.length)} that did`)),
      tile(
        "synchronised first",
        led.length ? firstShare(led) : DASH,
        of(groupsOf(led).length, "grokked runs that are no forks").replace("medians", "shares"),
      ),
      tile(
        "median lead",
        lead.groups ? `${lead.text} steps` : DASH,
        [
          of(lead.groups, "from synchronisation to grokking"),
          never ? `${counted(never, "run")} not synchronised` : "",
          cut ? `${counted(cut, "run")} stopped early, which biases it` : "",
        ]
          .filter(Boolean)
          .join("; "),
      ),
    );
  },
  showCurves(rows) {
    if (this.training.hidden) return;
    this.curves.forEach((figure, place) => {
      const name = CURVES[place],
        { lines, note } = grouped(rows, name, rows.length > MOST_LINES ? "configuration" : "none");
      figure.root.hidden = !lines.length;
      figure.note.textContent = note;
      figure.show(
        { x_label: "step", y_label: TITLES[name], y_range: rangeOf(name), log_y: name.endsWith("loss"), series: lines },
        logTable(rows, name),
      );
    });
  },
  showOutcomes(rows) {
    const names = [...new Set([...Object.keys(OUTCOMES), ...rows.map(row => row.outcome)])].filter(name =>
      rows.some(row => row.outcome === name),
    );
    // By task, or by λ where there is one task.
    const tasks = [...new Set(rows.map(row => row.task))].sort(),
      decays = [...new Set(rows.map(row => row.weight_decay))].filter(isNumber).sort((a, b) => a - b),
      kind = tasks.length > 1 ? "task" : "weight decay λ",
      barOf = row => (tasks.length > 1 ? row.task : `λ = ${short(row.weight_decay)}`),
      parts = tasks.length > 1 ? tasks : decays.map(decay => `λ = ${short(decay)}`),
      bars = parts.length > 1 && parts.length <= MOST_BARS ? ["all runs", ...parts] : ["all runs"];
    const members = bars.map((bar, i) => (i ? rows.filter(row => barOf(row) === bar) : rows)),
      below = bars.map(() => 0),
      margin = 0.6 + Math.max(0, FEWEST_BARS - bars.length) / 2; // so that a bar is never as wide as the page
    const series = names.map(name => {
      const counts = members.map(some => some.filter(row => row.outcome === name).length),
        y = counts.map((count, i) => count / Math.max(members[i].length, 1));
      const base = [...below];
      y.forEach((share, i) => {
        below[i] += share;
      });
      return {
        label: `${outcomeText(name)}: ${counts[0]}`,
        kind: "bars",
        role: outcomeRole(name),
        source: "run",
        x: bars.map((_, i) => i),
        y,
        base,
        texts: counts.map(count => (count ? String(count) : "")),
      };
    });
    this.outcomes.note.textContent = [explainedMarks(rows), stayed(rows), dipped(rows)].filter(Boolean).join(" ");
    this.outcomes.show(
      {
        x_label: bars.length > 1 ? kind : "",
        y_label: "share of runs",
        x_ticks: bars.map((bar, i) => [i, clipped(bar, 18)]),
        y_range: [0, 1],
        x_range: [-margin, bars.length - 1 + margin],
        series,
      },
      () => [
        [kind, "outcome", "runs"],
        ...bars.flatMap((bar, i) =>
          names.map(name => [bar, name, members[i].filter(row => row.outcome === name).length]),
        ),
      ],
    );
  },
  showHeadline(grokked) {
    const groups = groupsOf(grokked);
    if (!groups.length) return this.headline.empty("No run has grokked yet.");
    const { label, members } = groups[0];
    const lines = (name, text, role) =>
      linesOf(
        members
          .filter(row => row.log[name])
          .map(row => ({ name: row.name, x: Array.from(row.log.step, step => step - row.grokked), y: row.log[name] })),
        members.length < FEWEST ? text : `${text}, median and middle 80 %`,
        role,
      );
    this.headline.note.textContent = `Every run is shifted so that it groks at 0: ${counted(members.length, "run")}${groups.length > 1 ? ` of ${label}, the largest of ${groups.length} configurations; filter to see another` : ""}. Left of 0 is before grokking.`;
    return this.headline.show({
      x_label: "steps from grokking",
      y_label: "accuracy, FSD",
      y_range: SHARE,
      series: [
        ...lines("validation_accuracy", "validation accuracy", "validation"),
        ...lines("fsd", "FSD", "fsd"),
        ...lines("train_accuracy", "train accuracy", "train"),
        mark(0, "grokking"),
      ],
    });
  },
  showLeads(rows) {
    const known = rows.filter(row => isNumber(row.lead)),
      tasks = [...new Set(rows.map(row => row.task))].sort();
    if (!known.length) return this.leads.empty("No run has both synchronised and grokked.");
    const of = task => known.filter(row => row.task === task).map(row => row.lead),
      many = tasks.filter(task => of(task).length > 1 && groupsOf(known.filter(row => row.task === task)).length === 1);
    this.leads.note.textContent = `A dot is a run; right of 0 it synchronised first. ${many.length ? "A diamond is the median of a task with one configuration. " : ""}${rows.length > known.length ? `${counted(rows.length - known.length, "run")} grokked without synchronising.` : ""}`;
    const dots = {
      label: "run",
      kind: "points",
      role: "validation",
      source: "run",
      x: known.map(row => row.lead),
      y: known.map((row, i) => tasks.indexOf(row.task) + (((i * 7) % 15) - 7) / 40),
      tips: known.map(row => `${clipped(row.name)}: ${whole(row.lead)}`),
    };
    const medians = {
      label: "median of a task",
      kind: "points",
      role: "grokked",
      source: "paper",
      x: many.map(task => median(of(task))),
      y: many.map(task => tasks.indexOf(task)),
    };
    return this.leads.show(
      {
        x_label: "lead in steps",
        y_label: "task",
        y_ticks: tasks.map((task, i) => [i, task]),
        y_range: [tasks.length - 0.5, -0.5],
        height: Math.max(170, tasks.length * 34 + 76),
        series: [dots, medians, { label: "grokking", kind: "vertical", role: "theory", source: "run", x: [0] }],
      },
      () => [
        ["run", "task", "synchronised", "grokked", "lead"],
        ...rows.map(row => [row.name, row.task, row.sync, row.grokked, row.lead]),
      ],
    );
  },
};
