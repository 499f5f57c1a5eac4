"use strict";
(() => {
  const root = document.documentElement;
  root.classList.add("js");
  const byId = (id) => document.getElementById(id);
  const drawn = new Map();

  const color = (styles, token) => styles.getPropertyValue(/^\d$/.test(token) ? "--c" + token : "--" + token).trim();
  const painted = (value, styles) => {
    if (typeof value === "string") return /^@\w+$/.test(value) ? color(styles, value.slice(1)) : value;
    if (Array.isArray(value)) return typeof value[0] === "number" ? value : value.map((v) => painted(v, styles));
    if (value && typeof value === "object") return Object.fromEntries(Object.entries(value).map(([k, v]) => [k, painted(v, styles)]));
    return value;
  };

  const axis = (given, styles) => ({
    automargin: true, ticks: "", zeroline: false, showline: true, linecolor: color(styles, "line"), gridcolor: color(styles, "grid"),
    ...given, title: { standoff: 8, font: { size: 12.5 }, ...given.title },
  });

  const dressed = (figure, styles) => {
    const { data, layout } = painted(figure, styles);
    const touch = matchMedia("(pointer: coarse)").matches;
    return {
      data,
      layout: {
        ...layout, xaxis: axis(layout.xaxis, styles), yaxis: axis(layout.yaxis, styles), autosize: true,
        dragmode: touch ? false : "zoom", paper_bgcolor: "rgba(0,0,0,0)", plot_bgcolor: "rgba(0,0,0,0)",
        font: { family: getComputedStyle(document.body).fontFamily, size: 12, color: color(styles, "muted") },
        legend: { orientation: "h", x: 0, y: 1.02, yanchor: "bottom", font: { size: 12, color: color(styles, "fg") }, bgcolor: "rgba(0,0,0,0)" },
        margin: { l: 8, r: 12, t: 10, b: 8 },
        hoverlabel: { bgcolor: color(styles, "surface"), bordercolor: color(styles, "muted"), font: { color: color(styles, "fg"), size: 12 }, align: "left" },
      },
      config: {
        responsive: true, displaylogo: false, showSendToCloud: false, displayModeBar: touch ? false : "hover",
        modeBarButtonsToRemove: ["select2d", "lasso2d", "autoScale2d", "zoomIn2d", "zoomOut2d"],
        toImageButtonOptions: { format: "svg", filename: "hitmiss" },
      },
    };
  };

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
        const rows = [...body.rows].filter((row) => !row.className);
        const averages = [...body.rows].filter((row) => row.className);
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

  const drawing = "http://www.w3.org/2000/svg";
  const shape = (parent, name, attributes) => {
    const made = document.createElementNS(drawing, name);
    Object.entries(attributes).forEach(([key, value]) => made.setAttribute(key, value));
    parent.append(made);
    return made;
  };
  const bars = () => document.querySelectorAll("[data-iv]").forEach((place) => {
    const [low, high, at, pooled] = place.dataset.iv.split(" ");
    const svg = shape(place, "svg", { viewBox: "-6 0 112 12", "aria-hidden": "true" });
    shape(svg, "path", { class: "t", d: "M0 6h100" });
    if (pooled !== undefined) shape(svg, "path", { class: "p", d: `M${pooled} 0v12` });
    shape(svg, "path", { class: "w", d: `M${low} 6H${high}` });
    shape(svg, "circle", { cx: at, cy: 6, r: 3 });
  });

  const unpacked = async (id) => {
    const bytes = Uint8Array.from(atob(byId(id).textContent.trim()), (c) => c.charCodeAt(0));
    return new Response(new Blob([bytes]).stream().pipeThrough(new DecompressionStream("gzip"))).text();
  };

  const draw = (box, figures) => {
    if (drawn.has(box)) return;
    drawn.set(box, true);
    const { data, layout, config } = dressed(figures[box.id], getComputedStyle(root));
    window.Plotly.newPlot(box, data, layout, config);
  };

  const redraw = (figures) => drawn.forEach((_, box) => {
    const { data, layout, config } = dressed(figures[box.id], getComputedStyle(root));
    window.Plotly.react(box, data, layout, config);
  });

  const plots = async () => {
    const boxes = [...document.querySelectorAll(".plot")];
    if (!boxes.length) return;
    const figures = JSON.parse(await unpacked("figures"));
    const script = document.createElement("script");
    script.textContent = await unpacked("plotly");
    document.head.append(script);
    const watch = new IntersectionObserver((seen) => seen.filter((s) => s.isIntersecting).forEach((s) => draw(s.target, figures)), { rootMargin: "400px" });
    boxes.forEach((box) => watch.observe(box));
    window.addEventListener("beforeprint", () => boxes.forEach((box) => draw(box, figures)));
    matchMedia("(prefers-color-scheme: dark)").addEventListener("change", () => redraw(figures));
    byId("theme").addEventListener("click", () => redraw(figures));
    root.dataset.ready = "yes";
  };

  const isDark = () => (root.dataset.theme || (matchMedia("(prefers-color-scheme: dark)").matches ? "dark" : "light")) === "dark";
  const named = () => { byId("theme").textContent = isDark() ? "Light" : "Dark"; };
  byId("theme").addEventListener("click", () => { root.dataset.theme = isDark() ? "light" : "dark"; named(); });
  named();
  sortable();
  bars();
  plots().catch((error) => {
    root.classList.remove("js");
    document.querySelectorAll(".plot").forEach((box) => { box.textContent = "This figure could not be drawn (" + error.message + "); its numbers are in the table below."; });
  });
})();
