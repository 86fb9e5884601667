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
        text && tall > 14 && X(x + half) - X(x - half) > 8 * text.length
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
