// What the page knows: `data.rows`, one for each run, and each run's columns of numbers.
// biome-ignore lint/style/useConst: main.js assigns it
let data = null;
// How far a folder is that is being trained, and how fast; null on a page that is not live.
// biome-ignore lint/style/useConst: main.js assigns it
let liveProgress = null;

async function inflated(text) {
  const letters = atob(text.trim()),
    bytes = new Uint8Array(letters.length);
  for (let i = 0; i < letters.length; i++) bytes[i] = letters.charCodeAt(i);
  return new Response(new Blob([bytes]).stream().pipeThrough(new DecompressionStream("deflate"))).arrayBuffer();
}

// All first bytes stand before all second ones: put each number's own together again.
function numbers(bytes, start, count, size, kind) {
  const found = new Uint8Array(count * size);
  for (let byte = 0; byte < size; byte++) {
    const from = start + byte * count;
    for (let i = 0; i < count; i++) found[i * size + byte] = bytes[from + i];
  }
  return new kind(found.buffer);
}

async function read(factsText, columnsText) {
  const [factBytes, columnBytes] = await Promise.all([inflated(factsText), inflated(columnsText)]);
  const facts = JSON.parse(new TextDecoder().decode(factBytes)),
    bytes = new Uint8Array(columnBytes);
  const total = facts.lengths.reduce((sum, length) => sum + length, 0);
  const steps = numbers(bytes, 0, total, 4, Int32Array);
  for (let i = 1; i < total; i++) steps[i] += steps[i - 1];
  const size = facts.digits === null ? 8 : 4,
    columns = { step: steps };
  facts.columns.forEach((name, place) => {
    columns[name] = numbers(
      bytes,
      4 * total + place * total * size,
      total,
      size,
      size === 8 ? Float64Array : Float32Array,
    );
  });
  let from = 0;
  facts.rows.forEach((row, place) => {
    const until = from + facts.lengths[place];
    row.place = place;
    row.forked = row.fork ? row.fork.step : null;
    row.log = {};
    for (const [name, values] of Object.entries(columns)) {
      const part = values.subarray(from, until);
      if (name === "step" || part.some(value => !Number.isNaN(value))) row.log[name] = part;
    }
    row.begun = until > from;
    from = until;
  });
  facts.decays = new Set(facts.rows.map(row => row.weight_decay)).size;
  facts.byLink = new Map(facts.rows.map(row => [row.link, row]));
  facts.byName = new Map(facts.rows.map(row => [row.name, row]));
  return facts;
}

// Evaluations that arrive live: those before `keep` stay, these follow.
function extend(row, changes, keep, evaluations) {
  Object.assign(row, changes);
  for (const name of Object.keys(evaluations))
    if (name !== "step" && !data.columns.includes(name)) data.columns.push(name);
  const names = new Set([...Object.keys(row.log), ...Object.keys(evaluations)]),
    count = evaluations.step.length;
  for (const name of names) {
    const old = row.log[name],
      next = new Float64Array(keep + count).fill(NaN);
    if (old) next.set(old.subarray(0, keep));
    if (evaluations[name])
      next.set(
        evaluations[name].map(value => (value === null ? NaN : value)),
        keep,
      );
    row.log[name] = next;
  }
  row.begun = row.log.step.length > 0;
}

const TITLES = {
  validation_accuracy: "Validation accuracy",
  train_accuracy: "Train accuracy",
  fsd: "FSD",
  rank: "Median Fourier rank",
  norm: "Weight norm ‖W‖",
  train_loss: "Train loss",
  validation_loss: "Validation loss",
  fsd_mode: "Dominant mode",
  answer_share: "Answer share",
  weight_decay: "Weight decay λ",
  train_relative_error: "Train error over success",
  validation_relative_error: "Validation error over success",
};
// A column's title; those of groups of rows that are held out have their names.
const titleOf = name => TITLES[name] || name.charAt(0).toUpperCase() + name.slice(1).replaceAll("_", " ");
// A run's name without its hash, and with λ and its fork where runs of the page differ in them.
const shortName = row => (row.name.endsWith(`-${row.id}`) ? row.name.slice(0, -row.id.length - 1) : row.name);
const nameOf = row =>
  [
    shortName(row),
    ...(data.decays > 1 ? [`λ = ${row.weight_decay ?? "unknown"}`] : []),
    ...(row.fork ? [branch(row)] : []),
  ].join(", ");

// Outcomes in the order in which they are shown, each with its place in the palette.
const OUTCOMES = {
  grokked: 2,
  "grokked, then unstable": 5,
  "not grokked": 0,
  "not memorised": 6,
  unstable: 1,
  diverged: 3,
  "unfinished, grokked": 4,
  unfinished: 7,
};
const outcomeRole = outcome => `line ${OUTCOMES[outcome] ?? 7}`;
const markOf = outcome => data.marks[outcome]?.[0] || "";
const outcomeText = outcome => [outcome, markOf(outcome)].filter(Boolean).join(" ");
const explainedMarks = rows =>
  Object.entries(data.marks)
    .filter(([outcome]) => rows.some(row => row.outcome === outcome))
    .map(([, [mark, sentence]]) => `${mark} ${sentence}.`)
    .join(" ");
const memorizedBefore = row => Boolean(row.fork) && row.memorized === row.first;
const shownNumber = value => (data.digits === null ? value : Number(value.toPrecision(data.digits)));
const forkOptions = fork =>
  [
    fork.norm === "free" ? "" : `norm ${fork.norm}`,
    fork.scale === 1 ? "" : `× ${fork.scale}`,
    fork.moments === "reset" ? "moments reset" : "",
  ].filter(Boolean);
const branch = row =>
  row.fork ? [`forked at ${whole(row.fork.step)}`, ...forkOptions(row.fork)].join(", ") : "from the start";
const GROUPINGS = {
  task: ["task", row => row.task],
  seed: ["seed", row => `seed ${row.seed}`],
  weight_decay: ["λ", row => `λ = ${row.weight_decay ?? "unknown"}`],
  fork: ["fork", branch],
  outcome: ["outcome", row => outcomeText(row.outcome)],
  learning_rate: ["η", row => `η = ${row.learning_rate}`],
  train_fraction: ["train fraction", row => `train fraction ${row.train_fraction}`],
  model: ["model", row => row.model],
  trigger: [
    "trigger",
    row => (row.trigger ? `${row.trigger.signal} trigger to λ = ${row.trigger.weight_decay}` : "no trigger"),
  ],
  shuffled: ["labels", row => (row.shuffled ? "shuffled labels" : "true labels")],
  precision: ["precision", row => row.precision],
  other: ["other settings", row => row.other || "other settings as usual"],
};

// A line is named by what distinguishes its run from the others that are drawn.
function labels(rows) {
  const parts = Object.entries(GROUPINGS)
    .filter(([name]) => name !== "outcome")
    .map(([, [, text]]) => text);
  const varying = parts.filter(part => new Set(rows.map(part)).size > 1),
    seen = new Map();
  return rows.map(row => {
    const label = varying.map(part => clipped(part(row), 40)).join(", ") || row.name,
      count = (seen.get(label) || 0) + 1;
    seen.set(label, count);
    return count > 1 ? `${label} (${count})` : label;
  });
}

// Rows in the order of what distinguishes them.
const inOrder = rows =>
  [...rows].sort(
    (a, b) =>
      a.task.localeCompare(b.task, "en", { numeric: true }) ||
      a.seed - b.seed ||
      a.weight_decay - b.weight_decay ||
      (a.forked ?? -1) - (b.forked ?? -1),
  );

// One line for each run, of one column of its log.
function curvesOf(rows, name) {
  const known = inOrder(rows.filter(row => row.log[name])),
    names = labels(known);
  return known.map((row, place) =>
    curve(names[place], row.log.step, row.log[name], `line ${place}`, { tip: row.name }),
  );
}
const logTable = (rows, name) => () => [
  ["run", "weight_decay", "step", name],
  ...rows
    .filter(row => row.log[name])
    .flatMap(row =>
      Array.from(row.log.step, (step, i) => [row.name, row.weight_decay, step, shownNumber(row.log[name][i])]),
    ),
];
const SHARE = [-0.03, 1.03];
const rangeOf = name => (name.endsWith("accuracy") || name === "fsd" ? SHARE : null);
