// Forks and law: branches of one run over time, and how long they wait against λ.
const FORM_TEXT = { mean: "C/λ, C = mean(λΔt)", inverse: "C/λ, least squares", power: "C λ^−α", offset: "C/λ + d" };
const LETTERS = { constant: "C", exponent: "α", offset: "d" };
const predicted = (fit, lambda, end = 0) => {
  const value = name => fit.parameters[name][name === "constant" ? end : 0] ?? fit.parameters[name][0];
  if (fit.form === "power") return value("constant") * lambda ** -value("exponent");
  return value("constant") / lambda + (fit.form === "offset" ? value("offset") : 0);
};

const forks = {
  title: "Forks and law",
  build() {
    this.controls = h("div", { class: "controls" });
    this.accuracy = new Figure("branches", "Branches: validation accuracy");
    this.norm = new Figure("branch-norm", "Branches: weight norm");
    this.law = new Figure("law", "Steps from fork to grokking against weight decay");
    this.fits = h("div");
    this.none = h("p", { class: "empty" }, "There are no forks here. Make some with: grokscope fork RUN --at 1000 --weight-decay 1 2 3");
    this.some = h("div", {}, this.controls, h("div", { class: "pair" }, this.accuracy.root, this.norm.root), this.law.root, this.fits);
    return [h("h1", {}, "Forks and law"), h("p", { class: "lede" }, "Branches start from one state and differ in weight decay alone. If grokking waits for the norm to decay, the wait Δt falls as 1/λ."), this.none, this.some];
  },
  update() {
    const families = data.forks.families, any = families.length > 0;
    this.none.hidden = any;
    this.some.hidden = !any;
    if (!any) return;
    const name = family => `${family.parent === null ? family.hash : clipped(data.rows[family.parent].name, 40)} at step ${family.step} (${family.runs.length})`;
    const key = family => `${family.hash}-${family.step}`, family = families.find(one => key(one) === state.family) || families[0];
    const tasks = [...new Set(data.forks.waits.map(wait => wait.task))].sort(), task = tasks.includes(state.law) ? state.law : "";
    const now = JSON.stringify([key(family), task, families.length, tasks]);
    if (this.key !== now) {
      this.key = now;
      const focused = document.activeElement && document.activeElement.id;
      this.controls.replaceChildren(select("Branches of", families.map(one => [key(one), name(one)]), key(family), id => go({ family: id }), { id: "family" }),
        select("Law of", [["", "all tasks"], ...tasks.map(one => [one, one])], task, law => go({ law }), { id: "law-task" }));
      if (focused && this.controls.querySelector(`#${CSS.escape(focused)}`)) document.getElementById(focused).focus();
    }
    this.branches(family);
    this.timing(tasks.filter(one => !task || one === task));
  },
  branches(family) {
    const members = family.runs.map(place => data.rows[place]).sort((a, b) => a.weight_decay - b.weight_decay), parent = family.parent === null ? null : data.rows[family.parent];
    const labelled = row => `λ = ${row.weight_decay}${row.fork && branch(row).includes(",") ? `, ${branch(row).split(", ").slice(1).join(", ")}` : ""}${row.seed !== members[0].seed ? `, seed ${row.seed}` : ""}: ${row.outcome}`;
    // A parent may have dozens of branches; those that change λ alone are what the law is about.
    const plain = members.filter(row => !branch(row).includes(",") && row.seed === (parent || members[0]).seed), drawn = plain.length > 1 ? plain : members.slice(0, 24);
    const of = name => [...(parent && parent.log[name] ? [{ label: `parent, λ = ${parent.weight_decay}`, x: parent.log.step, y: parent.log[name], color: ink("soft"), dash: [2, 3] }] : []),
      ...drawn.filter(row => row.log[name]).map((row, place) => ({ label: labelled(row), x: row.log.step, y: row.log[name], color: color(place), dash: dash(place) }))];
    const marks = [{ at: family.step, label: "fork" }];
    const rows = name => () => [["run", "weight_decay", "step", name], ...[parent, ...members].filter(row => row && row.log[name]).flatMap(row => Array.from(row.log.step, (step, i) => [row.name, row.weight_decay, step, shownNumber(row.log[name][i])]))];
    lines(this.accuracy, { lines: of("validation_accuracy"), range: [-0.03, 1.03], marks, sync: "forks", height: 280, rows: rows("validation_accuracy") });
    const others = members.length - drawn.length;
    this.accuracy.note.textContent = [others ? `${counted(others, "branch", "branches")} more, ${plain.length > 1 ? "with another order of the data, scaled weights or a held norm, " : ""}in the CSV.` : "",
      family.remade ? `The parent shown was made again: ${counted(family.remade, "branch", "branches")} left an earlier making of it, the same spec with other rounding.` : ""].filter(Boolean).join(" ");
    lines(this.norm, { lines: of("norm"), marks, sync: "forks", height: 280, rows: rows("norm") });
  },
  timing(tasks) {
    const rows = new Set(chosen().map(row => row.place)), waits = data.forks.waits.filter(wait => tasks.includes(wait.task)), seen = waits.filter(wait => isNumber(wait.wait) && wait.wait > 0);
    const fits = data.forks.fits.filter(fit => tasks.includes(fit.task)), main = fits.filter(fit => fit.form === "mean" || fit.form === "power");
    if (!seen.length) this.law.empty("No finished fork has grokked after its fork.");
    else this.law.set(() => {
      const decays = waits.map(wait => wait.weight_decay), lasting = waits.map(wait => wait.wait > 0 ? wait.wait : wait.watched).filter(value => value > 0);
      const x = [Math.min(...decays) / 1.25, Math.max(...decays) * 1.25], y = [Math.min(...lasting) / 1.4, Math.max(...lasting) * 1.4];
      const plot = axes(this.law, { x, y, xLabel: "weight decay λ after the fork (log)", yLabel: "Δt in steps (log)", logarithmic: true, height: 380,
        about: main.map(fit => `${clipped(fit.task, 30)}: ${FORM_TEXT[fit.form]}, C = ${short(fit.parameters.constant[0], 4)}, R² = ${short(fit.r_squared)}`).join("; ") });
      const clip = s("clipPath", { id: "law-area" }, s("rect", { x: plot.left, y: plot.top, width: plot.right - plot.left, height: plot.bottom - plot.top }));
      const area = s("g", { "clip-path": "url(#law-area)" });
      plot.svg.append(clip, area);
      const grid = Array.from({ length: 60 }, (_, i) => x[0] * (x[1] / x[0]) ** (i / 59)), path = values => values.map(([a, b], i) => `${i ? "L" : "M"}${plot.X(a).toFixed(1)},${plot.Y(Math.max(b, 1e-9)).toFixed(1)}`).join("");
      for (const fit of main) {
        const tone = color(tasks.indexOf(fit.task)), [, low, high] = fit.parameters.constant;
        if (fit.form === "mean" && low !== null) area.append(s("path", { d: `${path(grid.map(at => [at, predicted(fit, at, 1)]))}L${path(grid.map(at => [at, predicted(fit, at, 2)]).reverse()).slice(1)}Z`, fill: tone, "fill-opacity": 0.15 }));
        area.append(s("path", { d: path(grid.map(at => [at, predicted(fit, at)])), fill: "none", stroke: tone, "stroke-width": 2, "stroke-dasharray": fit.form === "mean" ? "" : "6 4" }));
        this.law.legend.append(swatch(tone, fit.form === "mean" ? [] : [6, 4], `${clipped(fit.task, 30)}: ${FORM_TEXT[fit.form]}`).root);
      }
      waits.forEach((wait, i) => {
        const tone = color(tasks.indexOf(wait.task)), cx = plot.X(wait.weight_decay) + (i * 5) % 11 - 5, faded = rows.has(wait.run) ? 0.85 : 0.15, title = s("title", {}, `${clipped(data.rows[wait.run].name)}: ${wait.ending}${isNumber(wait.wait) ? `, Δt = ${wait.wait}` : ""}`);
        if (wait.wait > 0) area.append(s("circle", { cx, cy: plot.Y(wait.wait), r: 4.5, fill: tone, "fill-opacity": faded }, title));
        else if (wait.wait === null) area.append(s("path", { d: `M${cx - 5},${plot.Y(wait.watched) + 4}h10l-5,-9z`, fill: "none", stroke: tone, "stroke-width": 1.5, "stroke-opacity": faded }, title));
      });
    }, () => [["run", "task", "weight_decay", "steps_to_grok", "watched", "cadence", "ending"], ...waits.map(wait => [data.rows[wait.run].name, wait.task, wait.weight_decay, wait.wait, wait.watched, wait.cadence, wait.ending])]);
    this.law.note.textContent = "A dot is a fork that grokked, an open triangle one that had not by its last look (Δt is longer) or failed. Bands: 95 % of C over draws. Only forks that change λ alone are in the fits.";
    const ends = (parameter, name) => `${LETTERS[name] || name} = ${short(parameter[0], 4)}${parameter[1] === null ? "" : ` [${short(parameter[1], 4)}, ${short(parameter[2], 4)}]`}`;
    const endings = data.forks.outcomes.filter(one => tasks.includes(one.task)), kinds = [...new Set(endings.flatMap(one => Object.keys(one.endings)))];
    this.fits.replaceChildren(
      table("Fits to the mean Δt of each λ, with 95 % intervals over draws", ["task", "law", "parameters", "draws", "R²", "AIC", "error left out"], fits.map(fit => [clipped(fit.task), FORM_TEXT[fit.form], Object.entries(fit.parameters).map(([name, parameter]) => ends(parameter, name)).join(", "), { text: String(fit.draws), number: true }, { text: short(fit.r_squared), number: true }, { text: short(fit.aic), number: true }, { text: isNumber(fit.left_out_error) ? `${(100 * fit.left_out_error).toFixed(0)} %` : DASH, number: true }])),
      table("How the forks of each λ ended; the fits know only those that grokked", ["task", "λ", ...kinds, "unstable later †"], endings.map(one => [clipped(one.task), { text: short(one.weight_decay), number: true }, ...kinds.map(kind => ({ text: String(one.endings[kind] || 0), number: true })), { text: String(one.unstable_after), number: true }])));
  },
};
