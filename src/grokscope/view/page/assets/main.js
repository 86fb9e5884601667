// The page comes to life: sections, links, colours, printing, and news from a running folder.
const VIEWS = { overview, runs, run, forks, groups, method };
const sections = {};

function show(all = false) {
  for (const [name, view] of Object.entries(VIEWS)) {
    const wanted = all || name === state.view;
    if (wanted && !sections[name]) {
      sections[name] = h("section", { id: `view-${name}`, "aria-label": view.title });
      sections[name].append(...view.build());
      const after = Object.keys(VIEWS).slice(Object.keys(VIEWS).indexOf(name) + 1).map(key => sections[key]).find(Boolean);
      document.getElementById("main").insertBefore(sections[name], after || null);
    }
    if (sections[name]) sections[name].hidden = !wanted;
    if (wanted) view.update();
  }
  document.getElementById("nav").replaceChildren(...Object.entries(VIEWS).map(([name, view]) =>
    h("a", { href: address({ view: name }), "aria-current": name === state.view ? "page" : null }, view.title)));
  document.querySelectorAll(".dot").forEach(dot => { dot.style.background = outcomeColor(dot.dataset.outcome); });
}

// Sections are made again: all of them in other colours, and with new facts only the one that never changes by itself.
function rebuilt(names = Object.keys(sections)) {
  for (const name of names.filter(name => sections[name])) { sections[name].remove(); delete sections[name]; }
  for (const view of Object.values(VIEWS)) view.key = view.controlsKey = view.pickerKey = view.writtenOf = undefined;
  show();
}

function themed(theme) {
  document.documentElement.dataset.theme = theme;
  inks.clear();
  const next = theme === "dark" ? "Light" : "Dark", button = document.getElementById("theme");
  button.textContent = next;
  button.setAttribute("aria-label", `${next} colours`);
}

function fresh(facts) {
  data = facts;
  document.title = `${clipped(data.title, 100)} · grokscope`;
}

// A live page is told everything once, and then what is new; a lost connection begins anew by itself.
function listen(path) {
  const told = document.getElementById("live"), source = new EventSource(path);
  const tell = text => { if (told.textContent !== text) told.textContent = text; };
  source.addEventListener("all", async event => {
    const { facts, columns } = JSON.parse(event.data), first = data === null;
    fresh(await read(facts, columns));
    tell("live");
    if (first) begin(); else rebuilt(["method"]);
  });
  source.addEventListener("more", event => {
    if (data === null) return;
    for (const news of JSON.parse(event.data)) {
      const row = data.byName.get(news.row.name);
      if (row) extend(row, news.row, news.keep, news.looks);
    }
    tell("live");
    show();
  });
  source.onerror = () => tell("not connected");
}

function begin() {
  document.getElementById("loading")?.remove();
  state = parsed(location.hash);
  show();
  document.documentElement.dataset.ready = String(Math.round(performance.now()));
}

addEventListener("hashchange", () => { if (data && location.hash !== "#main") { state = parsed(location.hash); show(); scrollTo(0, 0); } });
addEventListener("popstate", () => { if (data && location.hash !== "#main") { state = parsed(location.hash); show(); } });
addEventListener("beforeprint", () => { if (data) show(true); });
addEventListener("afterprint", () => { if (data) show(); });
themed(matchMedia("(prefers-color-scheme: dark)").matches ? "dark" : "light");
document.getElementById("theme").addEventListener("click", () => { themed(document.documentElement.dataset.theme === "dark" ? "light" : "dark"); if (data) rebuilt(); });
const text = id => document.getElementById(id).textContent.trim();
if (text("events")) listen(text("events"));
else read(text("facts"), text("columns")).then(facts => { fresh(facts); begin(); });
