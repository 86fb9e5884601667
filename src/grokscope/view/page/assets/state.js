// What is shown, in the address: every view has a link.
const DEFAULTS = {
  view: "overview",
  run: "",
  sel: "",
  q: "",
  task: "",
  outcome: "",
  sort: "name",
  dir: "up",
  y: "validation_accuracy",
  by: "auto",
  family: "",
  law: "",
  group: "",
  at: "",
  verdict: "",
  zoom: "",
  log: "",
};
let state = { ...DEFAULTS };

function parsed(hash) {
  const [view, query] = hash.replace(/^#\/?/, "").split("?"),
    found = { ...DEFAULTS };
  if (VIEWS[view]) found.view = view;
  for (const [key, value] of new URLSearchParams(query || ""))
    if (key in DEFAULTS && key !== "view") found[key] = value;
  return found;
}

function address(changes = {}) {
  const next = { ...state, ...changes },
    query = new URLSearchParams();
  for (const [key, value] of Object.entries(next)) if (key !== "view" && value !== DEFAULTS[key]) query.set(key, value);
  return `#/${next.view}${String(query) ? `?${query}` : ""}`;
}

function go(changes) {
  const from = state.view;
  state = { ...state, ...(changes.view && changes.view !== from ? { zoom: "" } : {}), ...changes };
  if (state.view !== from) history.pushState(null, "", address());
  else history.replaceState(null, "", address());
  show();
}

const selected = () => new Set(state.sel ? state.sel.split(",") : []);

// Words of a filter: `field op value` compares a field, numbers as numbers; any other word is looked for in the text.
const FIELDS = {
  λ: "weight_decay",
  lambda: "weight_decay",
  wd: "weight_decay",
  lr: "learning_rate",
  fork: "forked",
  memorised: "memorized",
  synchronised: "sync",
  grok: "grokked",
  ...Object.fromEntries(
    [
      "weight_decay",
      "learning_rate",
      "train_fraction",
      "seed",
      "task",
      "outcome",
      "steps",
      "forked",
      "memorized",
      "sync",
      "grokked",
      "lead",
      "last",
      "name",
      "precision",
    ].map(name => [name, name]),
  ),
};
const COMPARE = {
  "=": (a, b) => a === b,
  "!=": (a, b) => a !== b,
  "<": (a, b) => a < b,
  ">": (a, b) => a > b,
  "<=": (a, b) => a <= b,
  ">=": (a, b) => a >= b,
};

function condition(word) {
  const found = /^([^=<>!]+)(<=|>=|!=|=|<|>)(.+)$/.exec(word);
  if (!found)
    return row => `${row.name} ${row.task} ${row.outcome} ${row.model} ${branch(row)}`.toLowerCase().includes(word);
  const [, name, sign, text] = found,
    field = FIELDS[name],
    value = Number(text);
  if (!field) return null;
  if (Number.isNaN(value)) return row => COMPARE[sign](String(row[field]).toLowerCase(), text);
  return row => isNumber(row[field]) && COMPARE[sign](row[field], value);
}

const words = () => state.q.toLowerCase().split(/\s+/).filter(Boolean);
const notUnderstood = () => words().filter(word => condition(word) === null);

function filtered() {
  const conditions = words().map(condition).filter(Boolean);
  return data.rows.filter(
    row =>
      (!state.task || row.task === state.task) &&
      (!state.outcome || row.outcome === state.outcome) &&
      conditions.every(holds => holds(row)),
  );
}

// The rows that drive every plot: those selected, or else those that pass the filter.
function chosen() {
  const ids = selected(),
    rows = filtered();
  return ids.size ? data.rows.filter(row => ids.has(row.link)) : rows;
}

const currentRun = () =>
  data.byLink.get(state.run) ||
  chosen().find(row => row.place in data.details) ||
  chosen().find(row => row.begun) ||
  data.rows[0];
