// One renderer for every plot. A chart is described as in `view/charts/figure.py`: axis titles, ranges, ticks, and
// series with a kind (line, step, points, bars, band, vertical, horizontal, span, cells), a role and a source.
const inks = new Map(); // computed once for each theme: asking the browser makes it lay out the page
function ink(name) {
  if (!inks.has(name)) inks.set(name, getComputedStyle(document.documentElement).getPropertyValue(`--${name}`).trim());
  return inks.get(name);
}
const color = place => ink(`c${place % 8}`);
const DASHES = [[], [6, 4], [2, 3], [8, 3, 2, 3]];
const numbered = role => /^line (\d+)$/.exec(role);

// A role's colour: its place in the palette, which both themes have; lines without a role are numbered.
function hue(role) {
  const found = numbered(role);
  if (found) return color(Number(found[1]));
  return role in data.roles ? color(data.roles[role]) : ink(role === "theory" ? "ink" : "soft");
}

function dashes(one) {
  const found = numbered(one.role),
    source = { fit: [6, 4], paper: [2, 3], null: [8, 3, 2, 3] }[one.source];
  return source || (found ? DASHES[Math.floor(Number(found[1]) / 8) % DASHES.length] : []);
}

const curve = (label, x, y, role, more = {}) => ({ label, kind: "line", role, source: "run", x, y, ...more });
const LAYERS = { span: 0, cells: 1, band: 2, horizontal: 3, bars: 4, line: 5, step: 5, points: 6, vertical: 7 };
const MARGIN = { top: 12, right: 18, bottom: 48 };
const LETTER = 6.8; // pixels of a mean letter

function save(name, content, kind) {
  const blob = content instanceof Blob ? content : new Blob([content], { type: kind });
  const link = h("a", { href: URL.createObjectURL(blob), download: name });
  document.body.append(link);
  link.click();
  link.remove();
  setTimeout(() => URL.revokeObjectURL(link.href), 10000);
}

// A text that a spreadsheet would compute begins with an apostrophe.
function csvCell(value) {
  if (value === null || value === undefined || Number.isNaN(value)) return "";
  if (typeof value === "number") return String(value);
  const text = /^[=+\-@\t\r]/.test(value) ? `'${value}` : String(value);
  return /[",\n\r]/.test(text) ? `"${text.replaceAll('"', '""')}"` : text;
}
const csv = rows => `${rows.map(row => row.map(csvCell).join(",")).join("\n")}\n`;
const csvButton = (name, title, rows) =>
  h(
    "button",
    { type: "button", onclick: () => save(`${name}.csv`, csv(rows()), "text/csv") },
    "CSV",
    h("span", { class: "unseen" }, ` of ${title}`),
  );

// Values of one axis that a series needs to be seen.
function spanned(one, axis) {
  if (one.kind === "span") return axis === "x" ? [...one.low, ...one.high] : [];
  if (one.kind === "vertical") return axis === "x" ? one.x : [];
  if (one.kind === "horizontal") return axis === "y" ? one.y : [];
  const values = Array.from(one[axis] || []),
    half = one.kind === "cells" ? 0.5 : (one.width || 0.8) / 2;
  if (one.kind === "cells" || (one.kind === "bars" && axis === "x")) return values.flatMap(v => [v - half, v + half]);
  if (axis === "x") return values;
  if (one.kind === "bars") return [0, ...values.map((v, i) => v + (one.base ? one.base[i] : 0))];
  return [...values, ...(one.low || []), ...(one.high || [])];
}

function range(panel, axis, visible = null) {
  if (panel[`${axis}_range`]) return panel[`${axis}_range`];
  const log = panel[`log_${axis}`];
  let low = Infinity,
    high = -Infinity;
  for (const one of panel.series) {
    const cut = visible && ["line", "step", "points"].includes(one.kind) && !one.low;
    const values = cut
      ? Array.from(one.y).filter((_, i) => one.x[i] >= visible[0] && one.x[i] <= visible[1])
      : spanned(one, axis);
    for (const value of values) {
      if (!isNumber(value) || (log && value <= 0)) continue;
      if (value < low) low = value;
      if (value > high) high = value;
    }
  }
  if (low > high) return log ? [1, 10] : [0, 1];
  const bare = axis === "x" && panel.series.every(one => one.kind !== "points");
  if (low === high) return log ? [low / 1.5, high * 1.5] : [low - 0.5, high + 0.5];
  if (bare || panel.series.some(one => one.kind === "cells")) return [low, high];
  if (log) return [low / (high / low) ** 0.05, high * (high / low) ** 0.05];
  const room = (high - low) * 0.05;
  return [low === 0 ? 0 : low - room, high + room];
}

function ticks([from, to], count, log) {
  const low = Math.min(from, to),
    high = Math.max(from, to),
    found = [];
  if (log) {
    for (let power = Math.floor(Math.log10(low)); power <= Math.ceil(Math.log10(high)); power++)
      for (const times of [1, 2, 5])
        if (times * 10 ** power >= low && times * 10 ** power <= high) found.push(times * 10 ** power);
    const powers = found.filter(value => Math.abs(Math.log10(value) % 1) < 1e-9);
    if (found.length > 2) return found.length > count + 2 && powers.length > 1 ? powers : found;
    found.length = 0;
  }
  const rough = (high - low) / count || 1,
    power = 10 ** Math.floor(Math.log10(rough));
  const step = [1, 2, 5, 10].map(times => times * power).find(one => one >= rough);
  for (let at = Math.ceil(low / step) * step; at <= high + step * 1e-9; at += step)
    found.push(Number(at.toPrecision(12)));
  return found;
}

function scale([low, high], from, to, log) {
  const of = value => (log ? Math.log(Math.max(value, Math.min(low, high))) : value),
    [a, b] = [of(low), of(high)];
  const place = value => from + (to - from) * (b === a ? 0.5 : (of(value) - a) / (b - a));
  place.invert = at => {
    const value = a + ((b - a) * (at - from)) / (to - from);
    return log ? Math.exp(value) : value;
  };
  return place;
}

const path = (xs, ys, X, Y, stepped = false) => {
  let text = "",
    before = null;
  for (let i = 0; i < xs.length; i++) {
    if (!isNumber(ys[i])) continue;
    const x = X(xs[i]).toFixed(1),
      y = Y(ys[i]).toFixed(1);
    text += before === null ? `M${x},${y}` : stepped ? `H${x}V${y}` : `L${x},${y}`;
    before = y;
  }
  return text;
};

function area(one, X, Y) {
  const known = Array.from(one.x, (_, i) => i).filter(i => isNumber(one.low[i]) && isNumber(one.high[i]));
  const edge = (ends, order) =>
    path(
      order.map(i => one.x[i]),
      order.map(i => ends[i]),
      X,
      Y,
    ).slice(1);
  return known.length ? `M${edge(one.high, known)}L${edge(one.low, [...known].reverse())}Z` : "";
}

// What each kind draws, in the order of LAYERS.
const KINDS = {
  span: (one, { X, top, bottom }) =>
    Array.from(one.low, (low, i) =>
      s("rect", {
        x: X(low),
        y: top,
        width: Math.max(X(one.high[i]) - X(low), 0),
        height: bottom - top,
        fill: hue(one.role),
        "fill-opacity": 0.13,
      }),
    ),
  band: (one, { X, Y, haze }) => [s("path", { d: area(one, X, Y), fill: hue(one.role), "fill-opacity": haze })],
  line: (one, plot) => [
    ...(one.low ? KINDS.band(one, plot) : []),
    s("path", {
      d: path(one.x, one.y, plot.X, plot.Y, one.kind === "step"),
      fill: "none",
      stroke: hue(one.role),
      "stroke-width": 1.75,
      "stroke-dasharray": dashes(one).join(" "),
      "stroke-linejoin": "round",
    }),
    ...(one.x.length < 3 ? KINDS.points(one, plot) : []),
  ],
  points: (one, { X, Y }) =>
    Array.from(one.x, (x, i) => {
      if (!isNumber(one.y[i])) return null;
      const tip = one.tips ? s("title", {}, one.tips[i]) : null,
        stroke = hue(one.role),
        [cx, cy] = [X(x), Y(one.y[i])];
      if (one.source === "paper")
        return s("path", { d: `M${cx},${cy - 5}l5,5l-5,5l-5,-5z`, fill: "none", stroke, "stroke-width": 1.5 }, tip);
      return s("circle", { cx, cy, r: 4, fill: stroke, "fill-opacity": 0.65 }, tip);
    }),
  bars: (one, { X, Y }) =>
    Array.from(one.x, (x, i) => {
      const half = (one.width || 0.8) / 2,
        base = one.base ? one.base[i] : 0,
        top = Y(base + one.y[i]),
        tall = Math.max(Y(base) - top, 0),
        text = (one.texts || [])[i];
      const bar = s(
        "rect",
        {
          "data-bar": i,
          x: X(x - half),
          y: top,
          width: Math.max(X(x + half) - X(x - half), 1),
          height: tall,
          fill: hue(one.role),
        },
        s("title", {}, `${one.label}: ${text || short(one.y[i])}`),
      );
      return [
        bar,
        text && tall > 14
          ? s(
              "text",
              { x: X(x), y: top + tall / 2 + 4, "text-anchor": "middle", fill: ink("on"), "font-weight": 600 },
              text,
            )
          : null,
      ];
    }).flat(),
  horizontal: (one, { Y, left, right }) =>
    Array.from(one.y, y =>
      s("line", { x1: left, x2: right, y1: Y(y), y2: Y(y), stroke: hue(one.role), "stroke-dasharray": "4 3" }),
    ),
  vertical: (one, { X, top, bottom }) =>
    Array.from(one.x, x =>
      s("line", { x1: X(x), x2: X(x), y1: top, y2: bottom, stroke: hue(one.role), "stroke-dasharray": "3 3" }),
    ),
  // One pixel for each cell, stretched: thousands of them are one picture.
  cells: (one, { X, Y }) => {
    const [across, up] = [one.x, one.y].map(values => values.reduce((most, value) => Math.max(most, value), 0) + 1);
    const canvas = h("canvas", { width: across, height: up }),
      pen = canvas.getContext("2d"),
      flipped = Y(0) > Y(1);
    pen.fillStyle = hue(one.role);
    one.x.forEach((x, i) => {
      pen.globalAlpha = Math.min(Math.max(one.depth[i], 0), 1);
      pen.fillRect(x, flipped ? up - 1 - one.y[i] : one.y[i], 1, 1);
    });
    const ends = [Y(-0.5), Y(up - 0.5)];
    return [
      s("image", {
        href: canvas.toDataURL(),
        x: X(-0.5),
        y: Math.min(...ends),
        width: X(across - 0.5) - X(-0.5),
        height: Math.abs(ends[1] - ends[0]),
        preserveAspectRatio: "none",
        "image-rendering": "pixelated",
      }),
    ];
  },
};
KINDS.step = KINDS.line;

// The sign of a series in a legend, 22 × 12 pixels.
function sign(one) {
  const fill = hue(one.role);
  if (["span", "band", "bars", "cells"].includes(one.kind))
    return s("rect", {
      x: 0,
      y: 2,
      width: 22,
      height: 8,
      fill,
      "fill-opacity": one.kind === "span" || one.kind === "band" ? 0.3 : 1,
    });
  if (one.kind === "points")
    return one.source === "paper"
      ? s("path", { d: "M11,1l5,5l-5,5l-5,-5z", fill: "none", stroke: fill, "stroke-width": 1.5 })
      : s("circle", { cx: 11, cy: 6, r: 4, fill });
  return s("line", {
    x1: 0,
    x2: 22,
    y1: 6,
    y2: 6,
    stroke: fill,
    "stroke-width": 2.5,
    "stroke-dasharray": one.kind === "horizontal" ? "4 3" : dashes(one).join(" "),
  });
}

// Names below the x axis: thinned to what has room, or turned where each must be read.
function named(panel, width) {
  const found = panel.x_ticks,
    longest = Math.max(...found.map(([, name]) => name.length)) * LETTER + 8,
    room = width / found.length;
  if (longest <= room || panel.series.every(one => one.kind !== "bars") || found.length > 40) {
    const every = Math.ceil(longest / room);
    return { marks: found.filter((_, i) => i % every === 0), turned: 0 };
  }
  return { marks: found, turned: Math.min(longest * 0.62, 90) };
}

// Axes with their titles and ticks, and the places of values.
function axes(svg, panel, width, height) {
  const marks = panel.series.filter(one => one.kind === "vertical" && one.texts).length,
    top = MARGIN.top + (marks ? 24 : 0);
  const y_ticks = panel.y_ticks ? panel.y_ticks.map(([at, name]) => [at, clipped(name, 14)]) : null;
  const x = range(panel, "x"),
    y = range(panel, "y", x),
    right = width - MARGIN.right;
  const ups =
    y_ticks || ticks(y, Math.max(2, Math.floor(height / 55)), panel.log_y).map(value => [value, short(value)]);
  const left = 30 + LETTER * Math.max(3, ...ups.map(([, name]) => name.length));
  const across = panel.x_ticks
    ? named(panel, right - left)
    : {
        marks: ticks(x, Math.max(2, Math.floor((right - left) / 90)), panel.log_x).map(value => [value, short(value)]),
        turned: 0,
      };
  const bottom = height - MARGIN.bottom - across.turned,
    X = scale(x, left, right, panel.log_x),
    Y = scale(y, bottom, top, panel.log_y);
  const plot = { X, Y, left, right, top, bottom, haze: panel.series.length > 6 ? 0.08 : 0.16 };
  const every = Math.max(1, Math.ceil((ups.length * 15) / (bottom - top))),
    soft = { fill: ink("soft") },
    rule = { stroke: ink("line") };
  for (const [at, name] of across.marks) {
    const turn = across.turned
      ? { "text-anchor": "end", transform: `rotate(-38 ${X(at)} ${bottom + 14})` }
      : { "text-anchor": "middle" };
    svg.append(
      s("line", { x1: X(at), x2: X(at), y1: top, y2: bottom, ...rule }),
      s("text", { x: X(at), y: bottom + (across.turned ? 14 : 17), ...soft, ...turn }, clipped(name, 24)),
    );
  }
  ups.forEach(([at, name], i) => {
    if (i % every) return;
    svg.append(
      s("line", { x1: left, x2: right, y1: Y(at), y2: Y(at), ...rule }),
      s("text", { x: left - 7, y: Y(at) + 4, ...soft, "text-anchor": "end" }, name),
    );
  });
  const middle = (top + bottom) / 2,
    log = is => (is ? " (log)" : "");
  svg.append(
    s(
      "text",
      { x: (left + right) / 2, y: height - 8, ...soft, "text-anchor": "middle" },
      panel.x_label + log(panel.log_x),
    ),
    s(
      "text",
      { x: 13, y: middle, ...soft, transform: `rotate(-90 13 ${middle})`, "text-anchor": "middle" },
      panel.y_label + log(panel.log_y),
    ),
  );
  return plot;
}

// Labels of vertical marks stand above the plot, in two rows where they would meet.
function marked(svg, panel, plot) {
  const marks = panel.series
    .filter(one => one.kind === "vertical" && one.texts)
    .flatMap(one => Array.from(one.x, (at, i) => [at, one.texts[i]]));
  let end = -1e9,
    lower = false;
  for (const [at, label] of marks.sort((a, b) => a[0] - b[0])) {
    const x = plot.X(at),
      size = label.length * LETTER;
    if (x < plot.left - 1 || x > plot.right + 1) continue;
    const from = Math.min(Math.max(x - size / 2, plot.left), plot.right - size);
    lower = from < end && !lower;
    svg.append(s("text", { x: from, y: plot.top - (lower ? 5 : 17), fill: ink("ink"), "font-size": 11 }, label));
    end = Math.max(end, from + size + 6);
  }
}

function drawn(panel, width, height, id, about) {
  const svg = s("svg", {
    xmlns: SVG,
    width,
    height,
    viewBox: `0 0 ${width} ${height}`,
    role: "img",
    tabindex: 0,
    "aria-label": about,
    "font-family": "system-ui, sans-serif",
    "font-size": 12,
  });
  svg.append(s("rect", { width, height, fill: ink("paper") }));
  const plot = axes(svg, panel, width, height),
    inside = s("g", { "clip-path": `url(#clip-${id})` });
  svg.append(
    s(
      "clipPath",
      { id: `clip-${id}` },
      s("rect", {
        x: plot.left,
        y: plot.top,
        width: Math.max(plot.right - plot.left, 0),
        height: Math.max(plot.bottom - plot.top, 0),
      }),
    ),
    inside,
  );
  for (const one of [...panel.series].sort((a, b) => LAYERS[a.kind] - LAYERS[b.kind]))
    inside.append(...KINDS[one.kind](one, plot).filter(Boolean));
  marked(svg, panel, plot);
  return { svg, plot };
}

function described(one) {
  const known = Array.from(one.y || []).filter(isNumber),
    name = clipped(one.label, 40);
  if (!known.length) return name;
  return one.kind === "line"
    ? `${name} from ${short(known[0])} to ${short(known[known.length - 1])}`
    : `${name}, ${counted(known.length, "value")}`;
}

const groupsOfFigures = new Map(); // figures whose cursors move together

// A title, a plot, a legend, and the data and pictures to take away.
class Figure {
  constructor(id, title, { note = "", height = 250, sync = "", steps = false } = {}) {
    Object.assign(this, { id, height, steps, panel: null, rows: () => [] });
    this.group = groupsOfFigures.get(sync) || new Set();
    if (sync) groupsOfFigures.set(sync, this.group);
    this.group.add(this);
    this.body = h("div", { class: "plot-body" });
    this.legend = h("ul", { class: "legend" });
    this.note = h("p", { class: "note" }, note);
    this.heading = h("h3", { id: `${id}-title` }, title);
    const button = (text, act) =>
      h("button", { type: "button", onclick: act }, text, h("span", { class: "unseen" }, ` of ${title || id}`));
    this.logButton = steps
      ? h(
          "button",
          { type: "button", class: "log", "aria-pressed": "false", onclick: () => go({ log: state.log ? "" : "1" }) },
          "log x",
          h("span", { class: "unseen" }, ` of ${title || id}`),
        )
      : null;
    this.tools = h(
      "div",
      { class: "tools" },
      csvButton(`${id}-chart`, title || id, () => this.rows()),
      button("SVG", () => save(`${id}-chart.svg`, this.standalone(), "image/svg+xml")),
      button("PNG", () => this.picture()),
      this.logButton,
    );
    this.root = h(
      "figure",
      { class: "plot", id: `figure-${id}`, "aria-labelledby": `${id}-title` },
      h("div", { class: "plot-head" }, this.heading, this.tools),
      this.body,
      this.legend,
      h("figcaption", {}, this.note),
    );
    new ResizeObserver(() => {
      if (this.panel && this.body.clientWidth && this.body.clientWidth !== this.drawnWidth) this.redraw();
    }).observe(this.body);
  }

  // The chart is drawn at the present width, and again when the width or the colours change.
  show(panel, rows = null) {
    const series = panel.series.filter(one => one && (one.x || one.y || one.low).length);
    if (!series.some(one => !["vertical", "span"].includes(one.kind))) return this.empty("Nothing was measured here.");
    const zoom = this.steps && state.zoom ? state.zoom.split(",").map(Number) : null;
    const logarithmic = this.steps && state.log ? { log_x: true } : {};
    this.panel = {
      ...panel,
      ...logarithmic,
      series,
      ...(zoom?.every(isNumber) && zoom[0] < zoom[1] ? { x_range: zoom } : {}),
    };
    this.rows =
      rows ||
      (() => [
        ["series", panel.x_label, panel.y_label, "low", "high"],
        ...series
          .filter(one => one.y)
          .flatMap(one =>
            Array.from(one.y, (y, i) => [
              one.label,
              one.x ? one.x[i] : null,
              y,
              one.low ? one.low[i] : null,
              one.high ? one.high[i] : null,
            ]),
          ),
      ]);
    this.tools.hidden = false;
    if (this.logButton) this.logButton.setAttribute("aria-pressed", String(Boolean(state.log)));
    if (this.body.clientWidth) this.redraw();
    return undefined;
  }

  empty(sentence) {
    this.panel = null;
    this.tools.hidden = true;
    this.legend.replaceChildren();
    this.body.replaceChildren(h("p", { class: "empty" }, sentence));
  }

  redraw() {
    this.drawnWidth = this.body.clientWidth;
    const about = `${this.heading.textContent}: ${this.panel.series.map(described).slice(0, 8).join("; ")}. ${this.steps ? "Arrow keys move the cursor." : ""}`;
    const { svg, plot } = drawn(
      this.panel,
      Math.max(this.drawnWidth, 280),
      this.panel.height || this.height,
      this.id,
      about,
    );
    this.plot = plot;
    this.body.replaceChildren(svg);
    this.where = h("span", { class: "where" });
    const entries = new Map();
    for (const one of this.panel.series) {
      const name = one.legend ?? one.label;
      if (name && !entries.has(name) && !(one.kind === "vertical")) entries.set(name, one);
    }
    this.keys = [...entries].map(([name, one]) => ({ name, one, value: h("span", { class: "value" }) }));
    this.legend.replaceChildren(
      h("li", { class: "where-item" }, this.where),
      ...this.keys.map(({ name, one, value }) =>
        h(
          "li",
          { title: one.tip || null },
          s("svg", { width: 22, height: 12, "aria-hidden": "true" }, sign(one)),
          h("span", { class: "name" }, clipped(name, 120)),
          value,
        ),
      ),
    );
    this.cursor = s("line", {
      class: "cursor",
      y1: plot.top,
      y2: plot.bottom,
      stroke: ink("soft"),
      visibility: "hidden",
    });
    this.choice = s("rect", {
      class: "cursor",
      y: plot.top,
      height: plot.bottom - plot.top,
      fill: ink("c0"),
      "fill-opacity": 0.16,
      visibility: "hidden",
    });
    svg.append(this.choice, this.cursor);
    if (this.steps) this.follow(svg);
  }

  follow(svg) {
    let from = null;
    const { plot } = this,
      at = event => Math.min(Math.max(event.clientX - svg.getBoundingClientRect().left, plot.left), plot.right);
    const known = this.panel.series
      .filter(one => one.kind === "line" && one.x.length)
      .flatMap(one => Array.from(one.x));
    this.places = [...new Set(known)].sort((a, b) => a - b);
    svg.addEventListener("pointermove", event => {
      this.point(plot.X.invert(at(event)));
      if (from !== null)
        fill(
          this.choice,
          { x: Math.min(from, at(event)), width: Math.abs(at(event) - from), visibility: "visible" },
          [],
        );
    });
    svg.addEventListener("pointerleave", () => {
      from = null;
      this.point(null);
    });
    svg.addEventListener("pointerdown", event => {
      from = at(event);
    });
    svg.addEventListener("pointerup", event => {
      const ends = from === null ? [0, 0] : [from, at(event)].sort((a, b) => a - b);
      from = null;
      this.choice.setAttribute("visibility", "hidden");
      if (ends[1] - ends[0] > 8) go({ zoom: ends.map(end => Math.round(plot.X.invert(end))).join(",") });
    });
    svg.addEventListener("dblclick", () => go({ zoom: "" }));
    svg.addEventListener("keydown", event => {
      const move = { ArrowLeft: -1, ArrowRight: 1, PageDown: -10, PageUp: 10 }[event.key];
      if (!move) return;
      event.preventDefault();
      this.legend.setAttribute("aria-live", "polite");
      const last = this.places.length - 1,
        now = this.pointed === null || this.pointed === undefined ? 0 : nearest(this.places, this.pointed);
      this.point(this.places[Math.min(last, Math.max(0, now + move))]);
    });
  }

  // The cursor of this figure and of those that it is linked with.
  point(x) {
    for (const figure of this.group) if (figure.panel && figure.places && figure.body.isConnected) figure.mark(x);
  }

  mark(x) {
    const at = x === null || !this.places.length ? null : this.places[nearest(this.places, x)];
    this.pointed = at;
    this.where.textContent = at === null ? "" : `${this.panel.x_label} ${whole(at)}`;
    fill(
      this.cursor,
      at === null ? { visibility: "hidden" } : { x1: this.plot.X(at), x2: this.plot.X(at), visibility: "visible" },
      [],
    );
    for (const { one, value } of this.keys) {
      const place = at === null || one.kind !== "line" ? -1 : nearest(one.x, at),
        inside = place >= 0 && at >= one.x[0] && at <= one.x[one.x.length - 1];
      value.textContent = inside && isNumber(one.y[place]) ? short(one.y[place], 4) : "";
    }
  }

  // The plot with its title and legend, as one file.
  standalone() {
    const plot = this.body.querySelector("svg").cloneNode(true),
      width = Number(plot.getAttribute("width")),
      height = Number(plot.getAttribute("height"));
    for (const one of plot.querySelectorAll(".cursor")) one.remove();
    const keys = s("g", {});
    let x = 14,
      y = height + 44;
    for (const { name, one } of this.keys) {
      const text = clipped(name, 90),
        size = 34 + text.length * LETTER + 14;
      if (x > 14 && x + size > width) [x, y] = [14, y + 20];
      keys.append(
        s("g", { transform: `translate(${x} ${y - 6})` }, sign(one)),
        s("text", { x: x + 28, y: y + 4, fill: ink("soft") }, text),
      );
      x += size;
    }
    const total = this.keys.length ? y + 18 : height + 34;
    const svg = s(
      "svg",
      {
        xmlns: SVG,
        width,
        height: total,
        viewBox: `0 0 ${width} ${total}`,
        "font-family": "system-ui, sans-serif",
        "font-size": 12,
      },
      s("rect", { width, height: total, fill: ink("paper") }),
      s(
        "text",
        { x: 14, y: 22, fill: ink("ink"), "font-size": 15, "font-weight": 600 },
        clipped(this.heading.textContent, 120),
      ),
      s("g", { transform: "translate(0 30)" }, [...plot.childNodes]),
      keys,
    );
    return new XMLSerializer().serializeToString(svg);
  }

  picture() {
    const image = new Image(),
      canvas = document.createElement("canvas");
    image.onload = () => {
      [canvas.width, canvas.height] = [2 * image.width, 2 * image.height];
      canvas.getContext("2d").drawImage(image, 0, 0, canvas.width, canvas.height);
      canvas.toBlob(blob => save(`${this.id}-chart.png`, blob));
    };
    image.src = `data:image/svg+xml;charset=utf-8,${encodeURIComponent(this.standalone())}`;
  }
}

function nearest(sorted, x) {
  let low = 0,
    high = sorted.length - 1;
  while (high - low > 1) {
    const middle = (low + high) >> 1;
    if (sorted[middle] <= x) low = middle;
    else high = middle;
  }
  return Math.abs(sorted[low] - x) <= Math.abs(sorted[high] - x) ? low : high;
}
