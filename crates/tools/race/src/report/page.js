// Draws the plots with their legends, switches between panels, and sorts and filters the table.
// All data is in the page.
"use strict";
const then = document.getElementById("then");
const touch = matchMedia("(hover: none)").matches;

const marks = { circle: "●", square: "■", "square-open": "□", diamond: "◆", "diamond-open": "◇", cross: "✚", "triangle-up": "▲", "triangle-down": "▼", pentagon: "⬟", "circle-open": "○" };

function draw(panel) {
  if (panel.firstChild) return Plotly.Plots.resize(panel.lastChild);
  const { data, layout, config } = JSON.parse(document.getElementById(panel.dataset.from).textContent);
  const chart = document.createElement("div");
  chart.className = "chart";
  const unit = document.createElement("div");
  unit.className = "unit";
  unit.textContent = layout.yaxis.title.text; // lies better above the axis than along it
  delete layout.yaxis.title;
  panel.append(legend(chart, data), unit, chart);
  if (touch) layout.dragmode = false; // a finger on a plot scrolls the page
  if (chart.clientWidth < 480 && layout.xaxis.type === "log") thin(layout.xaxis);
  for (const trace of data) if (trace.meta === "then") trace.visible = then.checked;
  Plotly.newPlot(chart, data, layout, config);
  chart.on("plotly_restyle", () => press(panel));
  press(panel);
}

// Every second label, and the one at 0, where there is no room for all.
function thin(axis) {
  const keep = axis.tickvals.map((at, number) => axis.ticktext[number] === "0" || Math.log2(at) % 6 === 0);
  axis.tickvals = axis.tickvals.filter((_, number) => keep[number]);
  axis.ticktext = axis.ticktext.filter((_, number) => keep[number]);
}

function legend(chart, data) {
  const list = document.createElement("div");
  list.className = "legend";
  data.forEach((trace, number) => {
    if (trace.showlegend === false) return;
    const item = document.createElement("button");
    const mark = document.createElement("span");
    item.type = "button";
    item.dataset.trace = number;
    mark.textContent = trace.type === "bar" ? "■" : marks[trace.marker.symbol] || "●";
    mark.style.color = trace.marker.color;
    item.append(mark, trace.name);
    item.onclick = () => Plotly.restyle(chart, { visible: !shown(chart.data[number]) }, [number]);
    item.ondblclick = () => {
      const alone = chart.data.every((trace, other) => shown(trace) === (other === number));
      Plotly.restyle(chart, { visible: chart.data.map((_, other) => alone || other === number) });
    };
    // Curves are listed from the front to the back, bars from left to right.
    data.some((other) => other.type === "bar") ? list.append(item) : list.prepend(item);
  });
  return list;
}

const shown = (trace) => trace.visible !== false;

function press(panel) {
  for (const item of panel.querySelectorAll("button")) {
    item.setAttribute("aria-pressed", shown(panel.lastChild.data[item.dataset.trace]));
  }
}

document.querySelectorAll(".panel:not([hidden])").forEach(draw);

for (const choice of document.querySelectorAll(".choices :is(input, select)")) {
  choice.addEventListener("change", () => {
    const panels = choice.closest(".plot").querySelectorAll(".panel");
    panels.forEach((panel, number) => { panel.hidden = number !== Number(choice.value); });
    draw(panels[choice.value]);
  });
}

if (then) then.addEventListener("change", () => {
  for (const chart of document.querySelectorAll(".chart")) {
    const old = chart.data.flatMap((trace, number) => (trace.meta === "then" ? [number] : []));
    if (old.length) Plotly.restyle(chart, { visible: then.checked }, old);
  }
});

const all = document.getElementById("all");
const body = all.tBodies[0];
all.querySelectorAll("th").forEach((head, column) => head.firstChild.addEventListener("click", () => {
  const down = head.getAttribute("aria-sort") === "ascending";
  const key = (row) => row.cells[column].dataset.v ?? row.cells[column].textContent;
  const order = (a, b) => key(a).localeCompare(key(b), "en", { numeric: true });
  const number = (a, b) => key(a) - key(b);
  const compare = head.classList.contains("n") ? number : order;
  all.querySelectorAll("th").forEach((other) => other.removeAttribute("aria-sort"));
  head.setAttribute("aria-sort", down ? "descending" : "ascending");
  body.append(...[...body.rows].sort((a, b) => (down ? compare(b, a) : compare(a, b))));
}));

document.getElementById("filter").addEventListener("input", (event) => {
  const words = event.target.value.toLowerCase().split(/\s+/);
  for (const row of body.rows) {
    const text = row.textContent.toLowerCase();
    row.hidden = !words.every((word) => text.includes(word));
  }
});
