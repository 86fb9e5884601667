// Figures: a title, a plot, a legend, and the data and picture to take away.
const inks = new Map(); // asked of the browser once for each theme: asking it makes it lay out the page
function ink(name) {
  if (!inks.has(name)) inks.set(name, getComputedStyle(document.documentElement).getPropertyValue(`--${name}`).trim());
  return inks.get(name);
}
const color = place => ink(`c${place % 8}`);
const DASHES = [[], [6, 4], [2, 3], [8, 3, 2, 3]];
const dash = place => DASHES[Math.floor(place / 8) % DASHES.length];

function save(name, content, kind) {
  const link = h("a", { href: URL.createObjectURL(content instanceof Blob ? content : new Blob([content], { type: kind })), download: name });
  document.body.append(link);
  link.click();
  link.remove();
  setTimeout(() => URL.revokeObjectURL(link.href), 10000);
}

// A text that a spreadsheet would compute begins with an apostrophe.
function csvCell(value) {
  if (value === null || value === undefined || (typeof value === "number" && value !== value)) return "";
  if (typeof value === "number") return String(value);
  const text = /^[=+\-@\t\r]/.test(value) ? `'${value}` : String(value);
  return /[",\n\r]/.test(text) ? `"${text.replaceAll('"', '""')}"` : text;
}
const csv = rows => rows.map(row => row.map(csvCell).join(",")).join("\n") + "\n";

class Figure {
  constructor(id, title, note = "") {
    this.id = id;
    this.plot = null;
    this.body = h("div", { class: "plot-body" });
    this.legend = h("ul", { class: "legend" });
    this.note = h("p", { class: "note" }, note);
    this.heading = h("h3", { id: `${id}-title` }, title);
    const csvButton = h("button", { type: "button", onclick: () => save(`${id}.csv`, csv(this.rows()), "text/csv") }, "CSV", h("span", { class: "unseen" }, ` of ${title}`));
    this.pictureButton = h("button", { type: "button", onclick: () => this.picture() }, h("span", {}, "PNG"), h("span", { class: "unseen" }, ` of ${title}`));
    this.root = h("figure", { class: "plot", id: `figure-${id}`, "aria-labelledby": `${id}-title` },
      h("div", { class: "plot-head" }, this.heading, h("div", { class: "tools" }, csvButton, this.pictureButton)), this.body, this.legend, h("figcaption", {}, this.note));
    this.rows = () => [];
    this.draw = null;
    new ResizeObserver(() => { if (this.draw && this.body.clientWidth && this.body.clientWidth !== this.drawnWidth) this.redraw(); }).observe(this.body);
  }

  // `draw` fills the empty body at its present width; it is called again when the width or the colours change.
  set(draw, rows) {
    this.draw = draw;
    this.rows = rows;
    if (this.body.clientWidth) this.redraw();
  }

  redraw() {
    this.drawnWidth = this.body.clientWidth;
    if (this.plot) this.plot.destroy();
    this.plot = null;
    this.body.replaceChildren();
    this.legend.replaceChildren();
    this.draw();
    const kind = this.body.querySelector("svg") ? "SVG" : "PNG";
    this.pictureButton.firstChild.textContent = kind;
  }

  empty(sentence) {
    this.set(() => this.body.append(h("p", { class: "empty" }, sentence)), () => [["note"], [sentence]]);
  }

  picture() {
    const svg = this.body.querySelector("svg");
    if (svg) return save(`${this.id}.svg`, new XMLSerializer().serializeToString(svg), "image/svg+xml");
    const drawn = this.body.querySelector("canvas");
    if (!drawn) return undefined;
    const canvas = document.createElement("canvas"), ratio = devicePixelRatio, top = 30 * ratio;
    [canvas.width, canvas.height] = [drawn.width, drawn.height + top];
    const pen = canvas.getContext("2d");
    pen.fillStyle = ink("paper");
    pen.fillRect(0, 0, canvas.width, canvas.height);
    pen.fillStyle = ink("ink");
    pen.font = `${15 * ratio}px system-ui, sans-serif`;
    pen.fillText(this.heading.textContent.slice(0, 120), 12 * ratio, 20 * ratio);
    pen.drawImage(drawn, 0, top);
    return canvas.toBlob(blob => save(`${this.id}.png`, blob));
  }
}

function swatch(stroke, pattern, label, area = 0) {
  const key = area ? s("rect", { x: 0, y: 2, width: 22, height: 8, fill: stroke, "fill-opacity": area })
    : s("line", { x1: 0, x2: 22, y1: 6, y2: 6, stroke, "stroke-width": 2.5, "stroke-dasharray": pattern.join(" ") });
  const value = h("span", { class: "value" });
  return { root: h("li", {}, s("svg", { width: 22, height: 12, "aria-hidden": "true" }, key), h("span", { class: "name" }, clipped(label, 120)), value), value };
}

const clean = values => Array.from(values, value => value === value ? value : null);

/* Lines over steps. Each line: {label, x, y, color, dash, low, high}; low and high make a band.
   shades: [{from, to, color, label}], marks: [{at, label}], levels: [{low, high, label}] lie behind the lines. */
function lines(figure, { lines, label = "step", range = null, height = 250, shades = [], marks = [], levels = [], sync = null, title = "", rows, logarithmic = false }) {
  const shown = lines.filter(line => line.x.length);
  if (!shown.length) return figure.empty("Nothing was measured here.");
  figure.set(() => {
    const tables = [], series = [{ label }], bands = [], keys = [], haze = shown.length > 6 ? "14" : "2e";
    shown.forEach((line, place) => {
      const stroke = line.color || color(place);
      if (line.low) {
        tables.push([Array.from(line.x), clean(line.high), clean(line.low)]);
        bands.push({ series: [series.length, series.length + 1], fill: `${stroke}${haze}` });
        series.push({ stroke: "transparent", points: { show: false } }, { stroke: "transparent", points: { show: false } });
      }
      tables.push([Array.from(line.x), clean(line.y)]);
      const key = swatch(stroke, line.dash || dash(place), line.label);
      keys.push({ ...key, place: series.length });
      figure.legend.append(key.root);
      series.push({ label: line.label, stroke, width: line.width || 1.75, dash: line.dash || dash(place), spanGaps: true, points: { show: line.x.length < 3 } });
    });
    for (const level of levels) figure.legend.append(swatch(ink("soft"), [], level.label, 0.3).root);
    for (const shade of shades) figure.legend.append(swatch(shade.color, [], shade.label, 0.3).root);
    const axis = { stroke: ink("soft"), grid: { stroke: ink("line"), width: 1 }, ticks: { stroke: ink("line"), size: 4 }, font: "12px system-ui, sans-serif" };
    const width = figure.body.clientWidth;
    const plot = figure.plot = new uPlot({
      width, height, series, bands, padding: [marks.length ? 28 : 8, 26, 0, 0], legend: { show: false },
      scales: { x: { time: false }, y: logarithmic ? { distr: 3 } : range ? { range: () => range } : {} },
      axes: [{ ...axis, size: 30, values: (_, at) => at.map(whole) }, { ...axis, grid: { ...axis.grid, filter: (_, at) => logarithmic ? at.map(value => Math.abs(Math.log10(value) % 1) < 1e-9 ? value : null) : at }, size: 58, values: (_, at) => at.map(value => value === null ? "" : short(value)) }],
      cursor: { sync: sync ? { key: sync } : undefined, points: { size: 6 }, drag: { x: true, y: false } },
      hooks: {
        drawClear: [u => behind(u, shades, levels)],
        draw: [u => marked(u, marks)],
        setCursor: [u => {
          const at = u.cursor.idx;
          keys.forEach(key => {
            const value = at === null || at === undefined ? null : u.data[key.place][at];
            key.value.textContent = isNumber(value) ? short(value, 4) : "";
          });
          figure.where.textContent = at === null || at === undefined ? "" : `${label} ${whole(u.data[0][at])}`;
        }],
      },
    }, uPlot.join(tables), figure.body);
    figure.where = h("span", { class: "where" });
    figure.legend.prepend(h("li", { class: "where-item" }, figure.where));
    plot.root.setAttribute("role", "img");
    plot.root.setAttribute("tabindex", "0");
    plot.root.setAttribute("aria-label", `${title || figure.heading.textContent}: ${shown.map(line => described(line)).slice(0, 8).join("; ")}. Arrow keys move the cursor.`);
    plot.root.addEventListener("keydown", event => moved(event, plot, figure));
  }, rows || (() => [["line", label, "value", "low", "high"], ...shown.flatMap(line =>
    Array.from(line.x, (x, i) => [line.label, x, line.y[i], line.low ? line.low[i] : null, line.high ? line.high[i] : null]))]));
}

function described(line) {
  const known = Array.from(line.y).filter(isNumber);
  return known.length ? `${clipped(line.label, 40)} from ${short(known[0])} to ${short(known[known.length - 1])}` : `${clipped(line.label, 40)} undefined`;
}

function moved(event, plot, figure) {
  const step = { ArrowLeft: -1, ArrowRight: 1, PageDown: -10, PageUp: 10 }[event.key];
  if (!step) return;
  event.preventDefault();
  figure.legend.setAttribute("aria-live", "polite");
  const last = plot.data[0].length - 1, at = Math.min(last, Math.max(0, (plot.cursor.idx ?? 0) + step));
  plot.setCursor({ left: plot.valToPos(plot.data[0][at], "x"), top: plot.over.clientHeight / 2 });
}

function behind(u, shades, levels) {
  const pen = u.ctx, { left, top, width, height } = u.bbox;
  pen.save();
  pen.beginPath();
  pen.rect(left, top, width, height);
  pen.clip();
  for (const shade of shades) {
    const from = u.valToPos(shade.from, "x", true), to = u.valToPos(shade.to, "x", true);
    pen.fillStyle = `${shade.color}24`;
    pen.fillRect(from, top, to - from, height);
  }
  for (const level of levels) {
    const low = u.valToPos(level.low, "y", true), high = u.valToPos(level.high, "y", true);
    pen.fillStyle = `${ink("soft")}3a`;
    pen.fillRect(left, high, width, Math.max(low - high, 1));
  }
  pen.restore();
}

function marked(u, marks) {
  const pen = u.ctx, ratio = devicePixelRatio, { left, top, width, height } = u.bbox;
  pen.save();
  pen.font = `${11 * ratio}px system-ui, sans-serif`;
  pen.strokeStyle = pen.fillStyle = ink("ink");
  pen.lineWidth = ratio;
  pen.textAlign = "left";
  pen.textBaseline = "alphabetic";
  let end = -1e9, lower = false;
  for (const mark of [...marks].sort((a, b) => a.at - b.at)) {
    const x = u.valToPos(mark.at, "x", true);
    if (x < left - 1 || x > left + width + 1) continue;
    pen.setLineDash([3 * ratio, 3 * ratio]);
    pen.beginPath();
    pen.moveTo(x, top);
    pen.lineTo(x, top + height);
    pen.stroke();
    const size = pen.measureText(mark.label).width, at = Math.min(Math.max(x - size / 2, left), left + width - size);
    lower = at < end && !lower;
    pen.fillText(mark.label, at, top - (lower ? 4 : 15) * ratio);
    end = Math.max(end, at + size + 6 * ratio);
  }
  pen.restore();
}

function ticks([low, high], count, logarithmic) {
  if (logarithmic) {
    const found = [];
    for (let power = Math.floor(Math.log10(low)); power <= Math.ceil(Math.log10(high)); power++)
      for (const times of [1, 2, 5]) if (times * 10 ** power >= low && times * 10 ** power <= high) found.push(times * 10 ** power);
    return found;
  }
  const rough = (high - low) / count || 1, power = 10 ** Math.floor(Math.log10(rough));
  const step = [1, 2, 5, 10].map(times => times * power).find(one => one >= rough), found = [];
  for (let at = Math.ceil(low / step) * step; at <= high + step * 1e-9; at += step) found.push(Number(at.toPrecision(12)));
  return found;
}

// Axes of a drawing that is saved as SVG; X and Y turn values into places.
function axes(figure, { x, y, xLabel, yLabel, height = 300, logarithmic = false, left = 64, xTicks = null, yTicks = null, about = "" }) {
  const width = Math.max(figure.body.clientWidth, 280), right = 16, top = 12, bottom = 46;
  const scale = (range, from, to) => value => {
    const [a, b, v] = logarithmic ? [Math.log(range[0]), Math.log(range[1]), Math.log(value)] : [...range, value];
    return from + (to - from) * (b === a ? 0.5 : (v - a) / (b - a));
  };
  const X = scale(x, left, width - right), Y = scale(y, height - bottom, top);
  const svg = s("svg", { xmlns: SVG, width, height, viewBox: `0 0 ${width} ${height}`, role: "img", "aria-label": about || figure.heading.textContent, "font-family": "system-ui, sans-serif", "font-size": 12 });
  svg.append(s("rect", { width, height, fill: ink("paper") }));
  for (const at of xTicks || ticks(x, 7, logarithmic)) svg.append(
    s("line", { x1: X(at), x2: X(at), y1: top, y2: height - bottom, stroke: ink("line") }),
    s("text", { x: X(at), y: height - bottom + 18, fill: ink("soft"), "text-anchor": "middle" }, short(at)));
  for (const [at, text] of yTicks || ticks(y, 5, logarithmic).map(value => [value, short(value)])) svg.append(
    s("line", { x1: left, x2: width - right, y1: Y(at), y2: Y(at), stroke: ink("line") }),
    s("text", { x: left - 8, y: Y(at) + 4, fill: ink("soft"), "text-anchor": "end" }, text));
  svg.append(s("text", { x: (left + width - right) / 2, y: height - 8, fill: ink("soft"), "text-anchor": "middle" }, xLabel),
    s("text", { x: 14, y: top + 4, fill: ink("soft"), transform: `rotate(-90 14 ${(height - bottom + top) / 2}) translate(0 ${(height - bottom + top) / 2 - top - 4})`, "text-anchor": "middle" }, yLabel));
  figure.body.append(svg);
  return { svg, X, Y, left, right: width - right, top, bottom: height - bottom };
}
