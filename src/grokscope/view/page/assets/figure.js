// A figure: a chart with its title, legend, cursor and zoom, and the files to take away.
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

// A file is called after the page and what it holds.
const fileName = (...parts) =>
  [data.title, ...parts]
    .filter(Boolean)
    .map(part =>
      clipped(part, 60)
        .replaceAll(" = ", "=")
        .replaceAll(",", "")
        .replace(/[^\p{L}\p{N}_.=]+/gu, "-")
        .replace(/^[-.]+|[-.]+$/g, ""),
    )
    .filter(Boolean)
    .join("-");
const csvButton = (name, title, rows) =>
  h(
    "button",
    { type: "button", onclick: () => save(`${name()}.csv`, csv(rows()), "text/csv") },
    "CSV",
    h("span", { class: "unseen" }, ` of ${title}`),
  );

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
  constructor(id, title, { note = "", height = 250, sync = "", steps = false, about = () => "" } = {}) {
    Object.assign(this, { id, height, steps, panel: null, rows: () => [] });
    const file = () => fileName(about(), this.heading.textContent);
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
    this.allButton = steps ? button("all steps", () => go({ zoom: "" })) : null;
    this.tools = h(
      "div",
      { class: "tools" },
      csvButton(file, title || id, () => this.rows()),
      button("SVG", () => save(`${file()}.svg`, this.standalone(), "image/svg+xml")),
      button("PNG", () => this.picture(`${file()}.png`)),
      this.logButton,
      this.allButton,
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
    if (this.allButton) this.allButton.hidden = !zoom;
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
      if (!name || one.kind === "vertical") continue;
      entries.set(name, [...(entries.get(name) || []), one]);
    }
    this.keys = [...entries].map(([name, all]) => ({ name, one: all[0], all, value: h("span", { class: "value" }) }));
    this.legend.replaceChildren(
      h("li", { class: "where-item" }, this.where),
      ...this.keys.map(({ name, one, all, value }) =>
        h(
          "li",
          { title: all.length === 1 ? one.tip || null : null },
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
    for (const { all, value } of this.keys) {
      const found = at === null ? [] : all.map(one => valueAt(one, at)).filter(isNumber),
        ends = [Math.min(...found), Math.max(...found)].map(end => short(end, 4));
      value.textContent = found.length ? [...new Set(ends)].join(" to ") : "";
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

  picture(name) {
    const image = new Image(),
      canvas = document.createElement("canvas");
    image.onload = () => {
      [canvas.width, canvas.height] = [2 * image.width, 2 * image.height];
      canvas.getContext("2d").drawImage(image, 0, 0, canvas.width, canvas.height);
      canvas.toBlob(blob => save(name, blob));
    };
    image.src = `data:image/svg+xml;charset=utf-8,${encodeURIComponent(this.standalone())}`;
  }
}

// What a line has at a place that it covers.
function valueAt(one, at) {
  if (one.kind !== "line" || !one.x.length || at < one.x[0] || at > one.x[one.x.length - 1]) return NaN;
  return one.y[nearest(one.x, at)];
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
