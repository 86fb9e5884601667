// Axes: ranges of the data, ticks, titles, and where a value stands.
const MARGIN = { top: 12, right: 28, bottom: 48 };
const LETTER = 7.2; // pixels of a mean letter

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
  if (low === high && low === 0 && axis === "x") return [0, 1]; // the first evaluation: no step is negative
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
  const left = 34 + LETTER * Math.max(3, ...ups.map(([, name]) => name.length));
  const across = panel.x_ticks
    ? named(panel, right - left)
    : {
        marks: ticks(x, Math.max(4, Math.floor((right - left) / 90)), panel.log_x).map(value => [value, short(value)]),
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
