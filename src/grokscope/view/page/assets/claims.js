// The claims of a study with their verdicts, above the plots of the overview.
const VERDICTS = {
  reproduced: ["✓", "good"],
  partly: ["◐", "fair"],
  "not reproduced": ["✗", "bad"],
  "paper inconsistent": ["≠", "odd"],
  "not testable as written": ["∅", "odd"],
  "too few runs": ["…", "few"],
};
const badge = verdict => {
  const [sign, kind] = VERDICTS[verdict] || ["·", "few"];
  return h(
    "span",
    { class: `badge ${kind}` },
    h("span", { "aria-hidden": "true" }, `${sign} `),
    clipped(String(verdict ?? "unknown"), 40),
  );
};

const claimsSection = {
  showClaims() {
    const claims = data.claims;
    if (!claims.length) return this.claims.replaceChildren();
    const verdicts = [...new Set(claims.map(claim => String(claim.verdict)))],
      wanted = claims.filter(claim => !state.verdict || String(claim.verdict) === state.verdict);
    const interval = claim =>
      Array.isArray(claim.interval) && claim.interval.length === 2
        ? ` [${claim.interval.map(end => (isNumber(end) ? short(end, 4) : String(end ?? "?"))).join(", ")}]`
        : claim.interval && !Array.isArray(claim.interval)
          ? ` [${claim.interval}]`
          : "";
    const plain = value => (typeof value === "number" ? short(value, 4) : String(value ?? DASH));
    const rows = wanted.map(claim =>
      h(
        "tr",
        {},
        h("th", { scope: "row" }, badge(claim.verdict)),
        h(
          "td",
          {},
          h("p", { class: "statement" }, plain(claim.statement)),
          h(
            "details",
            {},
            h("summary", {}, `Rule and reason (${clipped(plain(claim.name), 60)})`),
            h("p", {}, plain(claim.rule)),
            h("p", {}, plain(claim.why)),
          ),
        ),
        h("td", {}, plain(claim.where)),
        h("td", {}, plain(claim.reported ?? claim.printed)),
        h("td", {}, plain(claim.value) + (plain(claim.value).includes("[") ? "" : interval(claim))),
        h("td", { class: "number" }, plain(claim.n)),
      ),
    );
    const filter = [
      ["", `all ${claims.length}`],
      ...verdicts.map(verdict => [
        verdict,
        `${verdict}: ${claims.filter(claim => String(claim.verdict) === verdict).length}`,
      ]),
    ];
    const download = csvButton("claims", "the claims", () => [
      ["name", "verdict", "statement", "where", "reported", "value", "low", "high", "n", "why"],
      ...claims.map(claim => [
        claim.name,
        claim.verdict,
        claim.statement,
        claim.where,
        claim.reported ?? claim.printed,
        claim.value,
        ...(Array.isArray(claim.interval) ? claim.interval : [claim.interval, null]),
        claim.n,
        claim.why,
      ]),
    ]);
    return this.claims.replaceChildren(
      h(
        "div",
        { class: "plot-head" },
        h("h2", { id: "claims-title" }, "Claims"),
        h("div", { class: "tools" }, download),
      ),
      h(
        "ul",
        { class: "chips" },
        filter.map(([key, text]) =>
          h(
            "li",
            {},
            h(
              "button",
              { type: "button", "aria-pressed": String(state.verdict === key), onclick: () => go({ verdict: key }) },
              clipped(text, 50),
            ),
          ),
        ),
      ),
      h(
        "div",
        { class: "scroll", tabindex: 0, role: "region", "aria-label": "Claims" },
        h(
          "table",
          { class: "claims" },
          h("caption", {}, "Each claim was judged by its rule, which was written before any result."),
          h(
            "thead",
            {},
            h(
              "tr",
              {},
              ["verdict", "claim", "where", "paper", "here", "n"].map(head =>
                h("th", { scope: "col", class: head === "n" ? "number" : null }, head),
              ),
            ),
          ),
          h("tbody", {}, rows),
        ),
      ),
    );
  },
};
