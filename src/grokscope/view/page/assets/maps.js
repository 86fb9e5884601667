// Heat maps on a canvas: columns over x, rows over y, values in [0, 1] as depth of one hue.
const DEPTHS = { light: ["#fbfaf7", "#c9dcec", "#73acd3", "#2470a8", "#08325f"], dark: ["#1a1d22", "#1d3d5c", "#2b6ca3", "#77b7e6", "#e6f3ff"] };
const isDark = () => ink("scheme") === "dark";

function depth(value) {
  const stops = DEPTHS[isDark() ? "dark" : "light"], at = Math.min(Math.max(value, 0), 1) * (stops.length - 1);
  const low = Math.min(Math.floor(at), stops.length - 2), part = at - low;
  const [a, b] = [stops[low], stops[low + 1]].map(hex => [1, 3, 5].map(i => parseInt(hex.slice(i, i + 2), 16)));
  return `rgb(${a.map((from, i) => Math.round(from + (b[i] - from) * part)).join(",")})`;
}

function heat(figure, { columns, rows, value, xLabel, yLabel, xText, yText, height = 320, mark = null, about = "", data: table, paint = depth, top: most = 1 }) {
  figure.set(() => {
    const width = figure.body.clientWidth, ratio = devicePixelRatio, left = 76, right = 14, top = 10, bottom = 44;
    const canvas = h("canvas", { role: "img", "aria-label": about || figure.heading.textContent });
    [canvas.width, canvas.height] = [width * ratio, height * ratio];
    canvas.style.width = `${width}px`;
    canvas.style.height = `${height}px`;
    const pen = canvas.getContext("2d"), w = (width - left - right) / columns, t = (height - top - bottom) / rows;
    pen.scale(ratio, ratio);
    for (let i = 0; i < columns; i++) for (let j = 0; j < rows; j++) {
      const found = value(i, j);
      if (found === null) continue;
      pen.fillStyle = paint(found);
      pen.fillRect(left + i * w, top + j * t, Math.ceil(w * ratio) / ratio + 0.2, Math.ceil(t * ratio) / ratio + 0.2);
    }
    pen.strokeStyle = ink("line");
    pen.strokeRect(left, top, width - left - right, height - top - bottom);
    pen.fillStyle = ink("soft");
    pen.font = "12px system-ui, sans-serif";
    pen.textAlign = "center";
    const every = (count, room, size) => Math.max(1, Math.ceil(count * size / room));
    for (let i = 0; i < columns; i += every(columns, width - left - right, 56)) pen.fillText(xText(i), left + (i + 0.5) * w, height - bottom + 17);
    pen.fillText(xLabel, left + (width - left - right) / 2, height - 6);
    pen.textAlign = "right";
    for (let j = 0; j < rows; j += every(rows, height - top - bottom, 15)) pen.fillText(clipped(yText(j), 11), left - 6, top + (j + 0.5) * t + 4);
    pen.save();
    pen.translate(12, top + (height - top - bottom) / 2);
    pen.rotate(-Math.PI / 2);
    pen.textAlign = "center";
    pen.fillText(yLabel, 0, 0);
    pen.restore();
    if (mark !== null) {
      pen.strokeStyle = ink("c1");
      pen.lineWidth = 2;
      pen.strokeRect(left + mark * w, top, w, height - top - bottom);
    }
    figure.body.append(canvas);
    if (paint === depth) {
      const scale = h("canvas", { width: 120, height: 8, "aria-hidden": "true" }), brush = scale.getContext("2d");
      for (let i = 0; i < 120; i++) { brush.fillStyle = depth(i / 119); brush.fillRect(i, 0, 1, 8); }
      figure.legend.append(h("li", {}, h("span", {}, "0"), scale, h("span", {}, short(most))));
    }
  }, table);
}
