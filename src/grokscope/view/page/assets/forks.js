// Forks and law: branches of one run over time, and how long they take to grok against λ, family by family.
const forks = {
  title: "Forks and law",
  build() {
    this.controls = h("div", { class: "controls" });
    const over = { height: 300, sync: "forks", steps: true, about: () => this.shown };
    this.accuracy = new Figure("branches", "Branches: validation accuracy", over);
    this.norm = new Figure("branch-norm", "Branches: weight norm", over);
    this.law = new Figure("law", "Time to grok against weight decay", {
      height: 400,
    });
    this.fits = h("div");
    this.none = h(
      "p",
      { class: "empty" },
      "There are no forks here. Train some with: grokscope fork DIR RUN --at 1000 --weight-decay 1 2 3",
    );
    this.some = h(
      "div",
      {},
      this.controls,
      h("div", { class: "pair" }, this.accuracy.root, this.norm.root),
      this.law.root,
      this.fits,
    );
    return [
      h("h1", {}, "Forks and law"),
      h(
        "p",
        { class: "lede" },
        "Branches start from one state and differ in weight decay alone. If a run groks once its norm has decayed, the time to grok Δt falls as 1/λ. Forks are compared within a family: one experiment, one task, one fork step, one configuration. A parent counts as the branch with its own λ where no fork has it.",
      ),
      this.none,
      this.some,
    ];
  },
  update() {
    const { branches, laws } = data.forks,
      any = branches.length > 0;
    this.none.hidden = any;
    this.some.hidden = !any;
    if (!any) return;
    const name = one =>
      `${one.parent === null ? one.hash : clipped(nameOf(data.rows[one.parent]), 60)}: ${counted(one.runs.length, "branch", "branches")} from step ${whole(one.step)}`;
    const key = one => `${one.hash}-${one.step}`,
      shown = branches.find(one => key(one) === state.family) || branches[0];
    const law = laws[Number(state.law)] || laws[0],
      now = JSON.stringify([key(shown), state.law, branches.length, laws.map(one => one.title)]);
    if (this.key !== now) {
      this.key = now;
      const focused = document.activeElement?.id;
      this.controls.replaceChildren(
        select(
          "Branches of",
          branches.map(one => [key(one), name(one)]),
          key(shown),
          id => go({ family: id }),
          { id: "family" },
        ),
        laws.length
          ? select(
              "Law of",
              laws.map((one, i) => [String(i), one.title]),
              String(laws.indexOf(law)),
              place => go({ law: place }),
              { id: "law-family" },
            )
          : "",
      );
      if (focused && this.controls.querySelector(`#${CSS.escape(focused)}`)) document.getElementById(focused).focus();
    }
    this.shown = name(shown);
    this.branches(shown);
    this.timing(laws, law);
  },
  branches(family) {
    const members = family.runs.map(place => data.rows[place]).sort((a, b) => a.weight_decay - b.weight_decay),
      parent = family.parent === null ? null : data.rows[family.parent];
    // A parent may have dozens of branches; those that change λ alone are what the law is about.
    const plain = members.filter(row => !forkOptions(row.fork).length && row.seed === (parent || members[0]).seed),
      drawn = plain.length > 1 ? plain : members.slice(0, 24);
    const series = name => [
      ...(parent?.log[name]
        ? [
            curve(`parent, λ = ${parent.weight_decay}`, parent.log.step, parent.log[name], "null", {
              source: "paper",
              tip: parent.name,
            }),
          ]
        : []),
      ...curvesOf(drawn, name),
      mark(family.step, "fork"),
    ];
    const everyone = [parent, ...members].filter(Boolean);
    this.accuracy.show(
      { x_label: "step", y_label: "validation accuracy", y_range: SHARE, series: series("validation_accuracy") },
      logTable(everyone, "validation_accuracy"),
    );
    this.norm.show({ x_label: "step", y_label: "‖W‖", series: series("norm") }, logTable(everyone, "norm"));
    const others = members.length - drawn.length;
    this.accuracy.note.textContent = [
      others
        ? `${counted(others, "branch", "branches")} more, ${plain.length > 1 ? "with another data order, scaled weights or a constrained norm, " : ""}in the CSV.`
        : "",
      family.retrained
        ? `The parent shown was trained again: ${counted(family.retrained, "branch", "branches")} left an earlier run of the same spec, with other rounding.`
        : "",
    ]
      .filter(Boolean)
      .join(" ");
  },
  timing(laws, law) {
    if (!law) {
      this.fits.replaceChildren();
      return this.law.empty("No finished fork changes λ alone.");
    }
    const right = text => ({ text, number: true }),
      estimate = (ends, digits) =>
        ends
          ? `${short(ends[0], digits)}${ends[1] === null ? "" : ` [${short(ends[1], digits)}, ${short(ends[2], digits)}]`}`
          : DASH;
    this.law.heading.textContent = `Time to grok against weight decay: ${law.title}`;
    this.law.note.textContent = `${law.constant ? "Fitted to" : "Shown are"} ${law.size} of ${law.title}. ${law.reason ? `${law.constant ? "The exponent" : "The law"} is not fitted: ${law.reason}. ` : ""}${law.left_out ? `Left out of the fit: ${law.left_out}. ` : ""}A dot is a branch that grokked, a diamond one that had not by its last evaluation.${law.constant && isNumber(law.constant[1]) ? " Band: 95 % interval of C over seeds." : ""}`;
    this.law.show(law.chart, () => [
      ["run", "task", "weight_decay", "seed", "forked", "grokked", "last", "outcome"],
      ...law.runs
        .map(place => data.rows[place])
        .map(row => [row.name, row.task, row.weight_decay, row.seed, row.forked, row.grokked, row.last, row.outcome]),
    ]);
    const kinds = [...new Set(law.outcomes.flatMap(one => Object.keys(one.endings)))];
    return this.fits.replaceChildren(
      table(
        "The law Δt = C/λ of each family, and α of Δt = C λ^−α, with 95 % intervals over seeds: by maximum likelihood, each Δt known to the interval between two evaluations, runs that have not grokked counted as censored. σ is the scatter of log Δt around C/λ",
        ["family", "fitted to", "C", "seeds", "σ", "α", "AIC of C λ^−α less C/λ", "why not fitted"],
        laws.map(one => [
          clipped(one.title, 60),
          one.size,
          right(estimate(one.constant, 4)),
          right(whole(one.seeds)),
          right(short(one.spread)),
          right(estimate(one.exponent, 3)),
          right(short(one.aic_difference)),
          one.reason,
        ]),
      ),
      table(
        `How the branches of each λ ended: ${clipped(law.title, 60)}`,
        ["λ", ...kinds, "of the grokked, then unstable"],
        law.outcomes.map(one => [
          right(short(one.weight_decay)),
          ...kinds.map(kind => right(String(one.endings[kind] || 0))),
          right(String(one.unstable_after)),
        ]),
      ),
    );
  },
};
