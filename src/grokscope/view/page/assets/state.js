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
  forks: "",
  cols: "",
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

// Inside a notebook the page has no address: links would lead away from it, and its history is the notebook's.
const hasAddress = location.protocol !== "about:";

function go(changes) {
  const from = state.view;
  state = { ...state, ...(changes.view && changes.view !== from ? { zoom: "" } : {}), ...changes };
  if (hasAddress && state.view !== from) history.pushState(null, "", address());
  else if (hasAddress) history.replaceState(null, "", address());
  show();
}

const selected = () => new Set(state.sel ? state.sel.split(",") : []);

const currentRun = () =>
  data.byLink.get(state.run) ||
  chosen().find(row => row.place in data.details) ||
  chosen().find(row => row.begun) ||
  data.rows[0];
