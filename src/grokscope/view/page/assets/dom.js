// Elements are made of parts, never of markup: whatever a name holds, it is shown as text.
const SVG = "http://www.w3.org/2000/svg";

function fill(element, attributes, children) {
  for (const [name, value] of Object.entries(attributes || {})) {
    if (value === null || value === undefined || value === false) continue;
    if (name.startsWith("on")) element.addEventListener(name.slice(2), value);
    else element.setAttribute(name, value === true ? "" : value);
  }
  element.append(...children.flat().filter(child => child !== null && child !== undefined));
  return element;
}

const h = (tag, attributes, ...children) => fill(document.createElement(tag), attributes, children);
const s = (tag, attributes, ...children) => fill(document.createElementNS(SVG, tag), attributes, children);

const DASH = "–";
const isNumber = value => typeof value === "number" && Number.isFinite(value);
const whole = value => (isNumber(value) ? Math.round(value).toLocaleString("en-US").replace("-", "−") : DASH);

function short(value, digits = 3) {
  if (!isNumber(value)) return DASH;
  if (value !== 0 && (Math.abs(value) < 1e-3 || Math.abs(value) >= 1e6))
    return Number(value.toPrecision(digits)).toExponential().replace("-", "−").replace("+", "");
  const text =
    Math.abs(value) >= 1000
      ? value.toLocaleString("en-US", { maximumFractionDigits: 0 })
      : String(Number(value.toPrecision(digits)));
  return text.replace("-", "−");
}

const clipped = (text, most = 80) => (text.length > most ? `${text.slice(0, most)}…` : text);
const counted = (count, one, many = `${one}s`) => `${whole(count)} ${count === 1 ? one : many}`;

function quantile(sorted, share) {
  if (!sorted.length) return NaN;
  const at = (sorted.length - 1) * share,
    low = Math.floor(at),
    high = Math.ceil(at);
  return sorted[low] + (sorted[high] - sorted[low]) * (at - low);
}

const median = values =>
  quantile(
    [...values].sort((a, b) => a - b),
    0.5,
  );

function select(label, options, value, change, attributes = {}) {
  const list = h(
    "select",
    { onchange: event => change(event.target.value), ...attributes },
    options.map(([key, text]) => h("option", { value: key, selected: key === value }, clipped(text, 60))),
  );
  return h("label", { class: "control" }, h("span", {}, label), list);
}

function tickBox(label, on, change, attributes = {}) {
  const box = h("input", { type: "checkbox", onchange: event => change(event.target.checked), ...attributes });
  box.checked = on;
  return h("label", { class: "tick" }, box, h("span", {}, label));
}

// A table with row headings; a cell is a text, an element, or {text, number}.
function table(caption, heads, rows, attributes = {}) {
  const cell = (value, place) =>
    value?.nodeType
      ? h(place ? "td" : "th", place ? {} : { scope: "row" }, value)
      : h(
          place ? "td" : "th",
          {
            scope: place ? null : "row",
            class: typeof value === "number" || value?.number ? "number" : null,
          },
          typeof value === "number" ? short(value) : value?.number ? value.text : String(value ?? DASH),
        );
  const isRight = place => rows.length && (typeof rows[0][place] === "number" || rows[0][place]?.number);
  return h(
    "div",
    { class: "scroll", tabindex: 0, role: "region", "aria-label": caption },
    h(
      "table",
      attributes,
      h("caption", {}, h("span", {}, caption)),
      h(
        "thead",
        {},
        h(
          "tr",
          {},
          heads.map((head, place) => h("th", { scope: "col", class: isRight(place) ? "number" : null }, head)),
        ),
      ),
      h(
        "tbody",
        {},
        rows.map(row => h("tr", {}, row.map(cell))),
      ),
    ),
  );
}
