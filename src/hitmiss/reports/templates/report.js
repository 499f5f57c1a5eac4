"use strict";
(() => {
  const root = document.documentElement;
  const byId = (id) => document.getElementById(id);
  const sortable = () => document.querySelectorAll("table.sortable").forEach((table) => {
    table.querySelectorAll("thead th").forEach((head, at) => {
      const button = document.createElement("button");
      button.type = "button";
      button.textContent = head.textContent;
      head.textContent = "";
      head.append(button);
      button.addEventListener("click", () => {
        const up = head.getAttribute("aria-sort") !== "ascending";
        table.querySelectorAll("thead th").forEach((other) => other.removeAttribute("aria-sort"));
        head.setAttribute("aria-sort", up ? "ascending" : "descending");
        const body = table.tBodies[0];
        const isAverage = (row) => row.className !== "" && !row.classList.contains("weak");
        const rows = [...body.rows].filter((row) => !isAverage(row));
        const averages = [...body.rows].filter(isAverage);
        const key = (row) => (row.cells[at].querySelector("b") || row.cells[at]).textContent.trim().replace(/,(?=\d{3})|[*]$/g, "").replace("∞", "Infinity").replace(/^–$/, "");
        const order = (a, b) => {
          const [x, y] = [key(a), key(b)];
          if (x === "" || y === "") return (x === "") - (y === "");
          const [m, n] = [Number(x), Number(y)];
          return (Number.isNaN(m) || Number.isNaN(n) ? x.localeCompare(y, "en", { numeric: true }) : m - n) * (up ? 1 : -1);
        };
        body.append(...rows.sort(order), ...averages);
      });
    });
  });

  const isDark = () => (root.dataset.theme || (matchMedia("(prefers-color-scheme: dark)").matches ? "dark" : "light")) === "dark";
  const named = () => { byId("theme").textContent = isDark() ? "Light" : "Dark"; };
  byId("theme").addEventListener("click", () => { root.dataset.theme = isDark() ? "light" : "dark"; named(); });
  named();
  // A table of many rows gets a box to search it by: rows without the words are hidden, averages stay.
  const filters = () => document.querySelectorAll("table").forEach((table) => {
    const rows = table.tBodies.length ? [...table.tBodies[0].rows] : [];
    const scroll = table.closest(".scroll");
    if (!scroll || rows.length < 13) return;
    const label = document.createElement("label");
    label.className = "filter";
    const input = document.createElement("input");
    input.type = "search";
    const count = document.createElement("span");
    label.append("Search", input, count);
    scroll.before(label);
    input.addEventListener("input", () => {
      const words = input.value.toLowerCase().split(/\s+/).filter(Boolean);
      let shown = 0;
      rows.forEach((row) => {
        const text = row.textContent.toLowerCase();
        row.hidden = !/pooled|macro|worst|within/.test(row.className) && !words.every((word) => text.includes(word));
        shown += !row.hidden;
      });
      count.textContent = words.length ? shown + " of " + rows.length : "";
    });
  });

  // A click on a slice opens its own small figure, where it has one.
  const slices = () => document.querySelectorAll("figure[data-slice]").forEach((figure) => {
    const details = figure.closest("details");
    const table = details.previousElementSibling && details.previousElementSibling.querySelector("table");
    const row = table && [...table.tBodies[0].rows].find((r) => r.cells[0].firstChild && r.cells[0].firstChild.textContent.trim() === figure.dataset.slice);
    if (!row) return;
    const button = document.createElement("button");
    button.type = "button";
    button.className = "jump";
    button.textContent = figure.dataset.slice;
    button.title = "show its scores";
    row.cells[0].firstChild.replaceWith(button);
    button.addEventListener("click", () => { details.open = true; figure.scrollIntoView({ block: "center" }); figure.classList.add("picked"); });
  });

  // Errors are chosen by slice, by what each run said, and by words.
  const evidence = () => document.querySelectorAll(".evidence").forEach((box) => {
    const cards = [...box.querySelectorAll(".cards > li")];
    if (cards.length < 4) return;
    const read = (card, name) => new Map(JSON.parse(card.dataset[name] || "[]"));
    const facts = cards.map((card) => ({ card, text: card.textContent.toLowerCase(), slices: read(card, "slices"), runs: read(card, "runs") }));
    const bar = document.createElement("div");
    bar.className = "filter choices";
    const tests = [];
    const field = (words, control) => { const label = document.createElement("label"); label.append(words, " ", control); bar.append(label); return control; };
    const choose = (words, kind, name) => {
      const values = [...new Set(facts.map((f) => f[kind].get(name)).filter((v) => v !== undefined))].sort();
      if (values.length < 2 || values.length > 60) return;
      const select = document.createElement("select");
      ["all", ...values].forEach((value, i) => { const o = document.createElement("option"); o.textContent = value; o.value = i ? "=" + value : ""; select.append(o); });
      field(words, select);
      tests.push([select, (f) => !select.value || "=" + f[kind].get(name) === select.value]);
    };
    const names = (kind) => [...new Set(facts.flatMap((f) => [...f[kind].keys()]))];
    names("runs").slice(0, 8).forEach((name) => choose(name + " is", "runs", name));
    names("slices").forEach((name) => choose(name, "slices", name));
    const input = document.createElement("input");
    input.type = "search";
    field("Search", input);
    tests.push([input, (f) => input.value.toLowerCase().split(/\s+/).filter(Boolean).every((word) => f.text.includes(word))]);
    const count = document.createElement("output");
    bar.append(count);
    const show = () => {
      let n = 0;
      facts.forEach((f) => { const on = tests.every(([, test]) => test(f)); f.card.hidden = !on; n += on; });
      count.textContent = n === facts.length ? n + " errors" : n + " of " + facts.length + " errors";
    };
    tests.forEach(([control]) => control.addEventListener("input", show));
    show();
    box.querySelector("h4").before(bar);
  });

  const drawing = "http://www.w3.org/2000/svg";
  const scaled = (ends, value) => { const [a, b, from, to] = ends.split(" ").map(Number); return from + (Math.min(Math.max(value, a), b) - a) / (b - a) * (to - from); };
  const shape = (svg, name, kind) => {
    let made = svg.querySelector("." + kind);
    if (!made) { made = document.createElementNS(drawing, name); made.setAttribute("class", kind); svg.append(made); }
    return made;
  };
  const percent = (v) => (100 * v).toFixed(v < 0.1 ? 2 : 1) + " %";

  // One threshold moves the dot on the DET curve, the line in the histogram, the decisions and the cost.
  const explore = () => document.querySelectorAll(".explore").forEach((box) => {
    const runs = JSON.parse(box.querySelector("script").textContent);
    const part = byId(box.dataset.part);
    const slider = box.querySelector("input[type=range]");
    const select = box.querySelector("select");
    const cell = (name) => box.querySelector("[data-cell=" + name + "]");
    const value = (name) => Number(box.querySelector("[name=" + name + "]").value) || 0;
    const run = () => runs[select ? Number(select.value) : 0];
    const cost = (r, i) => value("prior") * value("miss") * r.frr[i] + (1 - value("prior")) * value("fa") * r.far[i];
    const show = () => {
      const r = run(), i = Math.min(Number(slider.value), r.t.length - 1);
      const fn = Math.round(r.frr[i] * r.n[0]), fp = Math.round(r.far[i] * r.n[1]);
      box.querySelector("output").textContent = r.t[i];
      slider.setAttribute("aria-valuetext", "threshold " + r.t[i] + ", missed " + percent(r.frr[i]) + ", false alarms " + percent(r.far[i]));
      Object.entries({ tp: r.n[0] - fn, fn, fp, tn: r.n[1] - fp }).forEach(([k, v]) => { cell(k).textContent = v.toLocaleString("en"); });
      cell("frr").textContent = percent(r.frr[i]);
      cell("far").textContent = percent(r.far[i]);
      const right = r.n[0] - fn;
      cell("precision").textContent = right + fp ? percent(right / (right + fp)) : "–";
      cell("cost").textContent = cost(r, i).toPrecision(3);
      part.querySelectorAll("figure[data-kind=det] > svg").forEach((svg) => {
        const dot = shape(svg, "circle", "probe-dot");
        dot.setAttribute("cx", scaled(svg.dataset.x, r.x[i]));
        dot.setAttribute("cy", scaled(svg.dataset.y, r.y[i]));
        dot.setAttribute("r", 5.5);
      });
      part.querySelectorAll(".figures:not(.small) > figure[data-kind=histogram]").forEach((figure, at) => {
        const svg = figure.querySelector("svg.plate");
        const [, , bottom, top] = svg.dataset.y.split(" ");
        const x = scaled(svg.dataset.x, r.t[i]);
        shape(svg, "path", "probe").setAttribute("d", at === (select ? Number(select.value) : 0) ? "M" + x + " " + bottom + "V" + top : "");
      });
    };
    const begin = () => { slider.max = run().t.length - 1; slider.value = run().start; show(); };
    slider.addEventListener("input", show);
    if (select) select.addEventListener("change", begin);
    box.querySelectorAll("input[type=number]").forEach((input) => input.addEventListener("input", show));
    box.querySelector("[data-best]").addEventListener("click", () => {
      const r = run(), every = r.t.map((_, i) => cost(r, i));
      slider.value = every.indexOf(Math.min(...every));
      show();
    });
    begin();
  });

  // The page can be read without any of this, so it waits for the first paint (which a hidden page never has): the second
  // frame begins when the first is on the screen.
  const frame = (work) => requestAnimationFrame(() => requestAnimationFrame(() => setTimeout(work)));
  const soon = (work) => (document.hidden ? setTimeout(work) : frame(work));
  soon(() => {
    root.classList.add("js");
    [sortable, filters, slices, evidence, explore].forEach((work) => work());
    root.removeAttribute("data-waiting"); // what is below the first screen was not laid out until now
    root.dataset.ready = "yes";
  });
})();
