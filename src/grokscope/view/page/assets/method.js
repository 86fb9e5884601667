// Method: what the terms mean and where the numbers come from.
// What somebody states of results: a table where it is one, never JSON.
const plainly = value =>
  value === null || (Array.isArray(value) && !value.length)
    ? "none"
    : isNumber(value)
      ? value.toLocaleString("en-US")
      : typeof value === "string"
        ? value
        : JSON.stringify(value);
const isRecord = value => value !== null && typeof value === "object" && !Array.isArray(value);
function statement(name, value) {
  const rows = isRecord(value)
    ? Object.entries(value)
    : Array.isArray(value)
      ? value.map((one, i) => [String(i + 1), one])
      : [];
  if (!rows.length || !rows.every(([, one]) => isRecord(one))) return clipped(plainly(value), 2000);
  const keys = [...new Set(rows.flatMap(([, one]) => Object.keys(one)))];
  return table(
    clipped(name),
    ["", ...keys.map(key => clipped(key, 40))],
    rows.map(([key, one]) => [clipped(key, 60), ...keys.map(each => clipped(plainly(one[each] ?? DASH), 200))]),
  );
}

const method = {
  title: "Method",
  build() {
    const { measures, events, paper, provenance, stated, version, problems } = data.method;
    const kept =
      data.digits === null
        ? "Every number is as it was stored."
        : `Curves are kept to ${data.digits} significant digits${data.stride > 1 ? `, and at every ${data.stride}th evaluation` : ""}, so that the page stays small; the folder has all.`;
    const keys = [...new Set(provenance.flatMap(one => Object.keys(one)))];
    return [
      h("h1", {}, "Method"),
      h("p", { class: "lede" }, `Written by grokscope ${version} from stored records alone. ${kept}`),
      h("h2", {}, "Events"),
      h(
        "dl",
        { class: "words" },
        events.map(([word, text]) => h("div", {}, h("dt", {}, word), h("dd", {}, text))),
      ),
      h("h2", {}, "Measures"),
      h(
        "p",
        { class: "note" },
        `“The paper” is ${paper.text}, `,
        h("a", { href: paper.link, rel: "noreferrer" }, paper.name),
        ".",
      ),
      h(
        "div",
        { class: "measures" },
        measures.map(one =>
          h(
            "article",
            {},
            h("h3", {}, one.title),
            h("p", { class: "formula" }, one.formula),
            h("p", { class: "note" }, `Source: ${one.source}. Null: ${one.null}.`),
          ),
        ),
      ),
      h("h2", {}, "Provenance"),
      provenance.length
        ? table(
            "Versions and machines with which the runs were trained",
            keys,
            provenance.map(one =>
              keys.map(key =>
                typeof one[key] === "number" ? { text: String(one[key]), number: true } : String(one[key] ?? DASH),
              ),
            ),
          )
        : h("p", {}, "The runs do not say where they were trained."),
      stated.length
        ? h(
            "dl",
            { class: "words" },
            stated.map(([word, text]) => h("div", {}, h("dt", {}, clipped(word)), h("dd", {}, statement(word, text)))),
          )
        : "",
      problems.length
        ? h(
            "section",
            {},
            h("h2", {}, "Left out"),
            h(
              "ul",
              {},
              problems.map(problem => h("li", {}, clipped(problem, 400))),
            ),
          )
        : "",
      h("h2", {}, "How to cite"),
      h(
        "pre",
        { class: "cite", tabindex: 0 },
        `@software{grokscope,\n  title = {grokscope: an instrument for studying grokking},\n  author = {{grokscope contributors}},\n  version = {${version}},\n  license = {MIT}\n}`,
      ),
    ];
  },
  update() {},
};
