// The filter of the runs: `field op value` compares a field, numbers as numbers; any other word is looked for in the text.
const FIELDS = {
  weight_decay: ["λ", "lambda", "wd", "decay"],
  learning_rate: ["η", "eta", "lr"],
  train_fraction: ["fraction"],
  seed: ["data_order"],
  split_seed: ["split"],
  init_seed: ["initialization"],
  forked: ["fork", "fork_step"],
  memorized: ["memorised"],
  sync: ["synchronized", "synchronised"],
  grokked: ["grok"],
  stable: [],
  lead: [],
  dips: [],
  longest_dip: [],
  last: ["last_step"],
  steps: [],
  task: [],
  outcome: [],
  name: ["run"],
  model: [],
  precision: [],
  study: [],
  id: ["hash"],
};
const WORDS = new Set(["task", "outcome", "name", "model", "precision", "study", "id"]); // fields that hold text
const fieldOf = new Map(Object.entries(FIELDS).flatMap(([name, others]) => [name, ...others].map(one => [one, name])));
const SIGNS = { "==": "=", "≠": "!=", "≤": "<=", "≥": ">=" };
const COMPARE = {
  "=": (a, b) => a === b,
  "!=": (a, b) => a !== b,
  "<": (a, b) => a < b,
  ">": (a, b) => a > b,
  "<=": (a, b) => a <= b,
  ">=": (a, b) => a >= b,
};
const PART = /([^\s=<>!≠≤≥]*)\s*(==|!=|<=|>=|[=<>≠≤≥])\s*("[^"]*"|[^\s=<>!≠≤≥]*)|\S+/gu;

// One part of a filter: what it demands of a row, or why it is not understood.
function condition([part, name, sign, text]) {
  if (part === "or" || part === "and") return { part, problem: "a run must pass all parts; there is no and, no or" };
  if (sign === undefined)
    return {
      part,
      holds: row =>
        `${row.name} ${row.task} ${outcomeText(row.outcome)} ${row.model} ${row.other} ${branch(row)} ${row.trigger ? GROUPINGS.trigger[1](row) : ""} ${row.shuffled ? "shuffled labels" : ""}`
          .toLowerCase()
          .includes(part),
    };
  const field = fieldOf.get(name.replaceAll("-", "_")),
    plain = SIGNS[sign] || sign,
    isEquality = plain === "=" || plain === "!=",
    compare = COMPARE[plain],
    wanted = text.replaceAll('"', "");
  if (!field) return { part, problem: name ? `there is no field ${name}` : "no field is named" };
  if (!text) return { part, problem: "the value is missing" };
  if (WORDS.has(field)) {
    if (!isEquality) return { part, problem: `${field} holds text: only = and ≠ compare it` };
    return { part, field, holds: row => compare(String(row[field] ?? "").toLowerCase(), wanted) };
  }
  const number = Number(wanted.replaceAll(",", "").replace("−", "-"));
  if (wanted === "never" || wanted === "none") {
    if (!isEquality) return { part, problem: `${wanted} can only be = or ≠` };
    return { part, field, holds: row => compare(isNumber(row[field]), false) };
  }
  if (!wanted.trim() || Number.isNaN(number)) return { part, problem: `${wanted} is not a number` };
  return { part, field, holds: row => isNumber(row[field]) && compare(row[field], number) };
}

const conditions = () => [...state.q.toLowerCase().matchAll(PART)].map(condition);
const notUnderstood = () => conditions().filter(one => one.problem);

function filtered() {
  const demands = conditions().filter(one => one.holds);
  return data.rows.filter(
    row =>
      (!state.task || row.task === state.task) &&
      (!state.outcome || row.outcome === state.outcome) &&
      demands.every(one => one.holds(row)),
  );
}

// The rows that drive every plot: those selected, or else those that pass the filter.
function chosen() {
  const ids = selected(),
    rows = filtered();
  return ids.size ? data.rows.filter(row => ids.has(row.link)) : rows;
}

// What is summarised of them: forks repeat their parent's start, so they are left out unless they are asked for.
function pooledRows() {
  const rows = chosen(),
    roots = rows.filter(row => !row.fork),
    wanted = state.forks || state.sel || state.by === "fork" || conditions().some(one => one.field === "forked");
  return wanted || !roots.length ? rows : roots;
}
