"use strict";
(function () {
  const root = document.documentElement;
  const narrow = window.matchMedia("(max-width: 640px)");
  const dark = window.matchMedia("(prefers-color-scheme: dark)");
  const colour = (name) => getComputedStyle(root).getPropertyValue(name).trim();

  function theme() {
    return root.dataset.theme || (dark.matches ? "dark" : "light");
  }

  function layoutOf(figure) {
    const axis = { gridcolor: colour("--line"), zerolinecolor: colour("--line"), linecolor: colour("--line") };
    const given = figure.layout;
    return Object.assign({}, given, {
      paper_bgcolor: "rgba(0,0,0,0)",
      plot_bgcolor: "rgba(0,0,0,0)",
      font: { color: colour("--ink"), family: "inherit", size: 12 },
      margin: narrow.matches ? { l: 44, r: 8, t: 10, b: 40 } : { l: 60, r: 20, t: 10, b: 45 },
      legend: { orientation: "h", y: 1.02, yanchor: "bottom", x: 0 },
      xaxis: Object.assign({}, axis, narrow.matches ? { nticks: 6, tickangle: 0 } : {}, given.xaxis),
      yaxis: Object.assign({}, axis, narrow.matches ? shortLabels(figure.data[0]) : {}, given.yaxis),
      shapes: (given.shapes || []).map((s) => Object.assign({}, s, { line: Object.assign({ color: colour("--muted") }, s.line) })),
    });
  }

  // On a phone long names of tracks would leave no room for what they did.
  function shortLabels(trace) {
    if (trace.type !== "heatmap") return {};
    const cut = (name) => (name.length > 12 ? name.slice(0, 11) + "…" : name);
    return { tickmode: "array", tickvals: trace.y, ticktext: trace.y.map((name) => cut(plain(name))) };
  }

  function dataOf(figure) {
    return figure.data.map(function (trace) {
      const copy = Object.assign({}, trace);
      if (copy.part) copy.marker = { color: colour("--part-" + copy.part) };
      if (copy.type === "heatmap") copy.showscale = !narrow.matches;
      if (copy.type === "heatmap") copy.colorscale = [[0, colour("--heat-0")], [0.5, colour("--heat-1")], [1, colour("--heat-2")]];
      if (copy.type === "icicle") {
        copy.marker = { colors: copy.ids.map((id) => colour("--flame-" + (id.split(".").length % 4))) };
        copy.textfont = { color: colour("--flame-ink") };
        copy.labels = copy.labels.map(plain);
        copy.text = copy.text.map(plain);
      } else if (Array.isArray(copy.text)) {
        copy.text = copy.text.map((row) => (Array.isArray(row) ? row.map(plain) : plain(row)));
      }
      return copy;
    });
  }

  // Plotly reads a small HTML dialect in texts; names of kernels are text.
  function plain(text) {
    return String(text).replace(/&/g, "&amp;").replace(/</g, "&lt;").replace(/>/g, "&gt;");
  }

  async function unpack() {
    const packed = document.getElementById("plotly");
    if (!packed) return false;
    if (typeof DecompressionStream === "undefined") {
      document.querySelectorAll(".plot").forEach((place) => { place.textContent = "This browser is too old to draw plots."; });
      return false;
    }
    const bytes = Uint8Array.from(atob(packed.textContent), (c) => c.charCodeAt(0));
    const stream = new Blob([bytes]).stream().pipeThrough(new DecompressionStream("gzip"));
    const script = document.createElement("script");
    script.textContent = await new Response(stream).text();
    document.head.appendChild(script);
    packed.remove();
    return true;
  }

  function draw() {
    const figures = JSON.parse(document.getElementById("figures").textContent);
    const options = { responsive: true, displayModeBar: false };
    for (const [name, figure] of Object.entries(figures)) {
      Plotly.react("plot-" + name, dataOf(figure), layoutOf(figure), options);
    }
    root.dataset.drawn = "yes";
  }

  function value(cell) {
    return cell.dataset.value !== undefined ? Number(cell.dataset.value) : cell.textContent.toLowerCase();
  }

  document.querySelectorAll("table.sortable").forEach(function (table) {
    table.querySelectorAll("th").forEach(function (head, column) {
      head.querySelector("button").addEventListener("click", function () {
        const down = head.getAttribute("aria-sort") !== "descending";
        table.querySelectorAll("th").forEach((other) => other.setAttribute("aria-sort", "none"));
        head.setAttribute("aria-sort", down ? "descending" : "ascending");
        const body = table.tBodies[0];
        const rows = Array.from(body.rows);
        rows.sort(function (a, b) {
          const x = value(a.cells[column]), y = value(b.cells[column]);
          const order = x < y ? -1 : x > y ? 1 : 0;
          return down ? -order : order;
        });
        body.append(...rows);
      });
    });
  });

  document.querySelectorAll("input.filter").forEach(function (input) {
    input.addEventListener("input", function () {
      const wanted = input.value.toLowerCase();
      input.parentElement.querySelectorAll("tbody tr").forEach(function (row) {
        row.hidden = !row.textContent.toLowerCase().includes(wanted);
      });
    });
  });

  const ready = unpack().then(function (found) { if (found) draw(); return found; });
  document.getElementById("theme").addEventListener("click", function () {
    root.dataset.theme = theme() === "dark" ? "light" : "dark";
    ready.then(function (found) { if (found) draw(); });
  });
  for (const media of [dark, narrow]) {
    media.addEventListener("change", function () { ready.then(function (found) { if (found) draw(); }); });
  }
  window.addEventListener("beforeprint", function () {
    document.querySelectorAll("details").forEach((entry) => { entry.open = true; });
  });
})();
