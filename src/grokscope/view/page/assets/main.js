// Sections, links, colours, printing, and updates from a running folder.
const VIEWS = { overview, runs, run, forks, groups, method };
const sections = {};

function show(all = false) {
  for (const [name, view] of Object.entries(VIEWS)) {
    const wanted = all || name === state.view;
    if (wanted && !sections[name]) {
      sections[name] = h("section", { id: `view-${name}`, "aria-label": view.title });
      sections[name].append(...view.build());
      const after = Object.keys(VIEWS)
        .slice(Object.keys(VIEWS).indexOf(name) + 1)
        .map(key => sections[key])
        .find(Boolean);
      document.getElementById("main").insertBefore(sections[name], after || null);
    }
    if (sections[name]) sections[name].hidden = !wanted;
    if (wanted) view.update();
  }
  document.getElementById("nav").replaceChildren(
    ...Object.entries(VIEWS)
      .filter(([name, view]) => name === state.view || !view.isEmpty?.())
      .map(([name, view]) =>
        h(
          "a",
          { href: address({ view: name, zoom: "" }), "aria-current": name === state.view ? "page" : null },
          view.title,
        ),
      ),
  );
  document.querySelectorAll(".dot").forEach(dot => {
    dot.style.background = hue(outcomeRole(dot.dataset.outcome));
  });
}

// Sections are built again: all of them in other colours, and with new facts only the one that never changes by itself.
function rebuild(names = Object.keys(sections)) {
  for (const name of names.filter(name => sections[name])) {
    sections[name].remove();
    delete sections[name];
  }
  if (names.length > 1) groupsOfFigures.clear(); // their figures are built again
  for (const view of Object.values(VIEWS))
    view.key = view.controlsKey = view.chooserKey = view.pickerKey = view.writtenOf = undefined;
  show();
}

function setTheme(theme) {
  document.documentElement.dataset.theme = theme;
  inks.clear();
  const next = theme === "dark" ? "Light" : "Dark",
    button = document.getElementById("theme");
  button.textContent = next;
  button.setAttribute("aria-label", `${next} colours`);
}

function accept(facts) {
  data = facts;
  document.title = `${clipped(data.title, 100)} · grokscope`;
}

// A live page receives everything once, and then what is new; a lost connection is opened again by itself.
function listen(path) {
  const status = document.getElementById("live"),
    source = new EventSource(path);
  const report = text => {
    if (status.textContent !== text) status.textContent = text;
  };
  source.addEventListener("all", async event => {
    const { facts, columns } = JSON.parse(event.data),
      first = data === null;
    accept(await read(facts, columns));
    report("live");
    if (first) begin();
    else rebuild(["method"]);
  });
  source.addEventListener("more", event => {
    if (data === null) return;
    for (const news of JSON.parse(event.data)) {
      const row = data.byName.get(news.row.name);
      if (row) extend(row, news.row, news.keep, news.evaluations);
    }
    report("live");
    show();
  });
  source.addEventListener("progress", event => {
    liveProgress = JSON.parse(event.data);
    if (data !== null && state.view === "overview") overview.showProgress();
  });
  source.onerror = () => report("not connected");
}

function begin() {
  document.getElementById("loading")?.remove();
  state = parsed(location.hash);
  show();
  document.documentElement.dataset.ready = String(Math.round(performance.now()));
}

function follow(hash) {
  state = parsed(hash);
  show();
  scrollTo(0, 0);
}

addEventListener("hashchange", () => {
  if (data && location.hash !== "#main") follow(location.hash);
});
addEventListener("click", event => {
  const link = hasAddress || !data ? null : event.target.closest('a[href^="#"]');
  if (!link) return;
  event.preventDefault();
  if (link.hash === "#main") document.getElementById("main").focus();
  else follow(link.hash);
});
addEventListener("popstate", () => {
  if (data && location.hash !== "#main") {
    state = parsed(location.hash);
    show();
  }
});
addEventListener("beforeprint", () => {
  if (data) show(true);
});
addEventListener("afterprint", () => {
  if (data) show();
});
setTheme(matchMedia("(prefers-color-scheme: dark)").matches ? "dark" : "light");
document.getElementById("theme").addEventListener("click", () => {
  setTheme(document.documentElement.dataset.theme === "dark" ? "light" : "dark");
  if (data) rebuild();
});
const text = id => document.getElementById(id).textContent.trim();
if (text("events")) listen(text("events"));
else
  read(text("facts"), text("columns")).then(facts => {
    accept(facts);
    begin();
  });
