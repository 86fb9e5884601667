// A study's message first; then how many of its claims have which verdict, and below the plots each of them.
const VERDICTS = {
  reproduced: ["✓", "good"],
  unlikely: ["◐", "fair"],
  refuted: ["✗", "bad"],
  "not testable": ["∅", "odd"],
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

const claimPlace = name => `claim-${name}`;

// Text in which two asterisks begin and end what is strong.
const emphasised = text => text.split("**").map((part, i) => (i % 2 ? h("strong", {}, part) : part));

const claimsSection = {
  // Plain sentences by topic, each with a way to the claims whose numbers it states.
  showMessage() {
    const known = new Set(data.claims.map(claim => String(claim.name))),
      topics = [...new Set(data.message.map(row => String(row.topic)))];
    const toClaim = name => () => {
      go({ verdict: "" });
      const row = document.getElementById(claimPlace(name));
      row.querySelector("details").open = true;
      row.scrollIntoView();
      row.querySelector("summary").focus();
    };
    const link = (name, place) => {
      const text = place ? "and these" : "numbers";
      return h(
        "button",
        {
          type: "button",
          class: "link",
          "aria-label": `${text} of the claim ${clipped(name)}`,
          onclick: toClaim(name),
        },
        text,
      );
    };
    const sentence = row => {
      const names = (Array.isArray(row.claims) ? row.claims : []).map(String).filter(name => known.has(name));
      return h(
        "li",
        {},
        emphasised(String(row.text)),
        names.flatMap((name, place) => [" ", link(name, place)]),
      );
    };
    this.message.replaceChildren(
      ...topics.flatMap(topic => [
        h("h2", {}, topic),
        h("ul", {}, data.message.filter(row => String(row.topic) === topic).map(sentence)),
      ]),
    );
  },
  showClaims() {
    const claims = data.claims;
    this.verdicts.replaceChildren();
    if (!claims.length) return this.claims.replaceChildren();
    const verdicts = [...new Set(claims.map(claim => String(claim.verdict)))],
      wanted = claims.filter(claim => !state.verdict || String(claim.verdict) === state.verdict);
    const interval = claim =>
      Array.isArray(claim.interval) && claim.interval.length === 2
        ? ` [${claim.interval.map(end => (isNumber(end) ? short(end) : String(end ?? "?"))).join(", ")}]`
        : claim.interval && !Array.isArray(claim.interval)
          ? ` [${claim.interval}]`
          : "";
    const plain = value => (typeof value === "number" ? short(value, 4) : String(value ?? DASH));
    const rows = wanted.map(claim =>
      h(
        "tr",
        { id: claimPlace(String(claim.name)) },
        h("th", { scope: "row" }, badge(claim.verdict), claim.firm ? " firm" : claim.provisional ? " provisional" : ""),
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
        h("td", { "data-head": "where" }, plain(claim.where)),
        h("td", { "data-head": "paper" }, plain(claim.reported ?? claim.printed)),
        h(
          "td",
          { "data-head": "here" },
          plain(claim.value) + (plain(claim.value).includes("[") ? "" : interval(claim)),
        ),
        h("td", { class: "number", "data-head": "n" }, plain(claim.n)),
      ),
    );
    const filter = [
      ["", `all ${claims.length}`],
      ...verdicts.map(verdict => [
        verdict,
        `${verdict}: ${claims.filter(claim => String(claim.verdict) === verdict).length}`,
      ]),
    ];
    const download = csvButton(
      () => fileName("claims"),
      "the claims",
      () => [
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
      ],
    );
    const chips = (label, shown, act) =>
      h(
        "ul",
        { class: "chips", "aria-label": label },
        shown.map(([key, text]) =>
          h(
            "li",
            {},
            h(
              "button",
              { type: "button", "aria-pressed": String(state.verdict === key), onclick: () => act(key) },
              clipped(text, 50),
            ),
          ),
        ),
      );
    this.verdicts.replaceChildren(
      chips(
        "Verdicts on the claims",
        [["", `${counted(claims.length, "claim")} judged`], ...filter.slice(1)],
        verdict => {
          go({ verdict });
          document.getElementById("claims-title").scrollIntoView();
        },
      ),
    );
    return this.claims.replaceChildren(
      h(
        "div",
        { class: "plot-head" },
        h("h2", { id: "claims-title" }, "Claims"),
        h("div", { class: "tools" }, download),
      ),
      chips("Claims with the verdict", filter, verdict => go({ verdict })),
      h(
        "div",
        { class: "scroll", tabindex: 0, role: "region", "aria-label": "Claims" },
        h(
          "table",
          { class: "claims" },
          h("caption", {}, h("span", {}, "Each claim is judged by its own rule.")),
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
