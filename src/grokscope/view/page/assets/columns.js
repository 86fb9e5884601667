// Columns of the table of runs: settings where they vary, and the events.
// What the table says of a run that grokked and was not seen to stay so.
const NOT_STABLE = { not_stable: "no", censored: "open" };
const stepCell = (value, title = "") => ({ text: whole(value), number: true, title });
const COLUMNS = {
  task: { head: "task", show: row => ({ text: row.task, title: clipped(row.task, 300) }) },
  seed: { head: "seed" },
  split_seed: { head: "split seed" },
  init_seed: { head: "initial seed" },
  weight_decay: { head: "λ", show: row => ({ text: short(row.weight_decay), number: true }) },
  forked: { head: "fork", show: row => stepCell(row.forked, row.fork ? branch(row) : "") },
  train_fraction: { head: "train fraction", show: row => ({ text: short(row.train_fraction), number: true }) },
  learning_rate: { head: "η", show: row => ({ text: short(row.learning_rate), number: true }) },
  model: { head: "model", show: row => ({ text: row.model }) },
  trigger: { head: "trigger", show: row => ({ text: row.trigger ? GROUPINGS.trigger[1](row) : DASH }) },
  shuffled: { head: "labels", show: row => ({ text: row.shuffled ? "shuffled" : "true" }) },
  precision: { head: "precision", show: row => ({ text: row.precision }) },
  other: { head: "other settings", show: row => ({ text: row.other || DASH, title: row.other }) },
  steps: { head: "steps", show: row => stepCell(row.steps) },
  study: { head: "study", show: row => ({ text: row.study || DASH, title: row.study }) },
  outcome: { head: "outcome", show: row => ({ text: outcomeText(row.outcome), outcome: row.outcome }) },
  memorized: {
    head: "memorised",
    show: row =>
      memorizedBefore(row) ? { text: "before", number: true, title: "before the fork" } : stepCell(row.memorized),
  },
  sync: { head: "synchronised", show: row => stepCell(row.sync, (row.sync_flags || []).join(", ")) },
  grokked: { head: "grokked", show: row => stepCell(row.grokked) },
  stable: {
    head: "stable",
    show: row =>
      isNumber(row.stable) || !(row.stability in NOT_STABLE)
        ? stepCell(row.stable, row.stability_text)
        : { text: NOT_STABLE[row.stability], number: true, title: row.stability_text },
  },
  lead: {
    head: "lead",
    show: row =>
      stepCell(
        row.lead,
        [row.lead_status, row.stopped_early ? "stopped early: leads are biased" : ""].filter(Boolean).join("; "),
      ),
  },
  dips: {
    head: "dips < ½ †",
    show: row => stepCell(row.dips, isNumber(row.longest_dip) ? `the longest: ${whole(row.longest_dip)} steps` : ""),
  },
  longest_dip: { head: "longest dip < ½", show: row => stepCell(row.longest_dip) },
  last: { head: "last step", show: row => stepCell(row.last, row.stopped_early ? "stopped early after grokking" : "") },
};
// What `grokscope query` and `export` call a column, where that is another word.
const IN_TABLES = {
  name: "run",
  id: "hash",
  forked: "fork_step",
  shuffled: "shuffled_labels",
  sync: "synchronized",
  last: "last_step",
};
const TEXTS = new Set(["name", "task", "model", "trigger", "shuffled", "precision", "other", "study", "outcome"]);
const EVENTS = ["outcome", "memorized", "sync", "grokked", "stable", "lead", "last"]; // shown whether they vary or not
const BY_CHOICE = new Set(["study", "longest_dip"]); // long, or told by another column: shown when chosen
const MOST_COLUMNS = 11; // that fit a window of usual width
const FIRST = ["task", "seed", "weight_decay", "forked", ...EVENTS, "dips"]; // that are kept if more vary than fit

const cellOf = (name, row) =>
  COLUMNS[name].show?.(row) || { text: String(row[name] ?? DASH), number: !TEXTS.has(name) };
const isSeed = name => name === "split_seed" || name === "init_seed";
const varies = name =>
  isSeed(name)
    ? data.rows.some(row => row[name] !== row.seed)
    : new Set(data.rows.map(row => cellOf(name, row).text)).size > 1;

// The columns that vary, as many as fit.
function usualColumns() {
  const wanted = Object.keys(COLUMNS).filter(name => EVENTS.includes(name) || (!BY_CHOICE.has(name) && varies(name))),
    first = [...FIRST, ...wanted].filter((name, place, all) => wanted.includes(name) && all.indexOf(name) === place);
  return wanted.filter(name => first.indexOf(name) < MOST_COLUMNS);
}

function shownColumns() {
  const wanted = state.cols.split(",").filter(name => name in COLUMNS);
  return wanted.length ? Object.keys(COLUMNS).filter(name => wanted.includes(name)) : usualColumns();
}
