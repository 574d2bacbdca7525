// Draws the plots with their legends, switches between panels, and makes, sorts and filters the table.
// All data is in the page: `rows` are arrays in the order of `FIELDS`, texts are numbers of `words`.
"use strict";
const { words, looks, rows, figures } = JSON.parse(document.getElementById("data").textContent);
const FIELDS = ["operation", "look", "network", "tasks", "bytes", "size", "metric", "unit", "median", "low", "high", "p99", "least", "launches", "samples", "path", "flags", "doubt"];
const at = Object.fromEntries(FIELDS.map((name, column) => [name, column]));
const then = document.getElementById("then");
const SVG = "http" + "://www.w3.org/2000/svg";
const MARGIN = { left: 46, right: 14, top: 12, bottom: 40 };

const marks = {
  circle: "M4,0A4,4 0 1 1 -4,0A4,4 0 1 1 4,0Z", square: "M-3.6,-3.6H3.6V3.6H-3.6Z", diamond: "M0,-5L5,0L0,5L-5,0Z", tall: "M0,-6L3.4,0L0,6L-3.4,0Z",
  cross: "M-1.5,-4.5H1.5V-1.5H4.5V1.5H1.5V4.5H-1.5V1.5H-4.5V-1.5H-1.5Z", up: "M0,-5L4.6,3.6H-4.6Z", down: "M0,5L4.6,-3.6H-4.6Z", pentagon: "M0,-4.8L4.6,-1.5L2.8,3.9H-2.8L-4.6,-1.5Z",
};

function node(name, attributes, parent, text) {
  const made = document.createElementNS(SVG, name);
  for (const [key, value] of Object.entries(attributes)) made.setAttribute(key, value);
  if (text !== undefined) made.textContent = text;
  if (parent) parent.append(made);
  return made;
}

function mark(parent, [x, y], look, size) {
  const open = look.mark.endsWith("-open");
  const style = open ? { fill: "var(--card)", stroke: look.color, "stroke-width": 1.6 } : { fill: look.color };
  return node("path", { d: marks[look.mark.replace("-open", "")] || marks.circle, transform: `translate(${x},${y}) scale(${size})`, ...style }, parent);
}

const significant = (value, digits = 3) => !Number.isFinite(value) ? "?" : value === 0 ? "0" : Math.abs(value) < 1e-6 || Math.abs(value) >= 1e12 ? value.toExponential(digits - 1) : Number(value.toPrecision(digits)).toLocaleString("en", { maximumSignificantDigits: digits });
const short = (value) => { for (const [size, unit] of [[1e9, "G"], [1e6, "M"], [1e3, "k"]]) if (value >= size) return Number((value / size).toPrecision(6)) + unit; return String(Number(value.toPrecision(6))); };
const tick = (bytes) => { for (const [size, unit] of [[2 ** 30, "G"], [2 ** 20, "M"], [1024, "K"]]) if (bytes >= size) return bytes / size + unit; return String(bytes); };
const shown = (row) => `${significant(row[at.median])} ${words[row[at.unit]]}`;

// A scale from values to pixels; its ticks, each with a text.
function linear(most, [from, to]) {
  const step = [1, 2, 5, 10].map((factor) => factor * 10 ** Math.floor(Math.log10(most / 4))).find((step) => most / step <= 5) || most / 4;
  const ticks = [];
  for (let value = 0; value <= most * 1.0001; value += step) ticks.push([value, short(value)]);
  return { place: (value) => from + (Math.min(value, most) / most) * (to - from), ticks };
}

function logarithmic(least, most, [from, to]) {
  const [low, high] = [Math.log(least), Math.log(most)];
  const decades = (high - low) / Math.LN10;
  const steps = decades < 1.7 ? [1, 2, 5] : [1];
  const every = decades < 6.5 ? 1 : 2;
  const ticks = [];
  for (let power = Math.floor(low / Math.LN10); power <= Math.ceil(high / Math.LN10); power++) {
    if (power % every) continue;
    for (const step of steps) {
      const value = step * 10 ** power;
      if (value >= least && value <= most) ticks.push([value, short(value)]);
    }
  }
  return { place: (value) => from + ((Math.log(Math.min(Math.max(value, least), most)) - low) / (high - low || 1)) * (to - from), ticks };
}

// The points of a panel: who, where, how much, and the interval.
function points(figure, panel) {
  const rate = (bytes, us) => bytes / us / 1e3;
  return panel.rows.map((number) => {
    const row = rows[number];
    const [bytes, median, low, high] = [row[at.bytes], row[at.median], row[at.low], row[at.high]];
    const [value, ends] = figure.bandwidth ? [rate(bytes, median), [rate(bytes, high), rate(bytes, low)]] : [median, [low, high]];
    return { row, look: looks[row[at.look]], x: figure.over === "bytes" ? bytes : row[at.tasks], value, ends };
  });
}

function horizontal(figure, all, width) {
  const span = [MARGIN.left, width - MARGIN.right];
  if (figure.over === "tasks") {
    const tasks = [...new Set(all.map((point) => point.x))].sort((a, b) => a - b);
    const band = (span[1] - span[0]) / tasks.length;
    return { place: (value) => span[0] + band * (tasks.indexOf(value) + 0.5), ticks: tasks.map((n) => [n, String(n)]), band, has: (value) => tasks.includes(value), title: "tasks" };
  }
  const sizes = all.map((point) => point.x).filter((size) => size > 0);
  const [least, most] = [Math.min(...sizes), Math.max(...sizes)];
  const zero = all.some((point) => point.x === 0) ? least / 4 : null;
  const scale = logarithmic((zero ?? least) / 1.4, most * 1.4, span);
  const powers = [...Array(11).keys()].map((power) => 8 ** power);
  const every = width < 480 ? 2 : 1;
  const ticks = powers.filter((size, power) => size >= (zero ? zero * 2 : least / 1.4) && size <= most * 1.4 && power % every === 0).map((size) => [size, tick(size)]);
  if (zero) ticks.unshift([zero, "0"]);
  return { place: (size) => scale.place(size || zero || least), ticks, has: (size) => (size === 0 ? zero !== null : size >= least && size <= most), title: "message size, bytes (K = 1024)" };
}

function vertical(figure, all, height) {
  const span = [height - MARGIN.bottom, MARGIN.top];
  const values = all.map((point) => point.value);
  const ends = all.flatMap((point) => point.ends).filter((value) => value > 0 && Number.isFinite(value));
  const most = Math.max(...values), least = Math.min(...values);
  if (figure.zero || (figure.over === "tasks" && most < least * 30)) return linear(Math.max(...ends, ...values, 1e-9) * 1.06, span);
  const low = Math.min(...ends, ...values.filter((value) => value > 0)), high = Math.max(...ends, ...values);
  return low > 0 && Number.isFinite(high) ? logarithmic(low / 1.25, high * 1.25, span) : linear(1, span);
}

function frame(svg, x, y, width, height, title) {
  for (const [value, text] of y.ticks) {
    const place = y.place(value);
    node("line", { class: "grid", x1: MARGIN.left, x2: width - MARGIN.right, y1: place, y2: place }, svg);
    node("text", { x: MARGIN.left - 6, y: place + 4, "text-anchor": "end" }, svg, text);
  }
  node("line", { class: "axis", x1: MARGIN.left, x2: width - MARGIN.right, y1: height - MARGIN.bottom, y2: height - MARGIN.bottom }, svg);
  for (const [value, text] of x.ticks) node("text", { x: x.place(value), y: height - MARGIN.bottom + 16, "text-anchor": "middle" }, svg, text);
  node("text", { x: (MARGIN.left + width - MARGIN.right) / 2, y: height - 6, "text-anchor": "middle" }, svg, title);
}

function interval(svg, x, [low, high], y, color) {
  if (!(high > low)) return;
  const [top, bottom] = [y.place(high), y.place(low)];
  node("path", { d: `M${x - 3},${top}H${x + 3}M${x},${top}V${bottom}M${x - 3},${bottom}H${x + 3}`, stroke: color, "stroke-width": 1.2, fill: "none" }, svg);
}

function curves(svg, all, x, y) {
  for (const look of [...looks].reverse()) {
    const mine = all.filter((point) => point.look === look).sort((a, b) => a.x - b.x);
    if (!mine.length) continue;
    const place = (point) => [x.place(point.x), y.place(point.value)];
    // No line leads from 0 bytes on: that point has no true place on a logarithmic axis.
    const joined = mine.filter((point) => point.x > 0).map((point) => place(point).join(","));
    node("polyline", { points: joined.join(" "), fill: "none", stroke: look.color, "stroke-width": look.ours ? 3 : 1.8, "stroke-dasharray": look.limit ? "7 5" : "none" }, svg);
    for (const point of mine) {
      const [left, top] = (point.place = place(point));
      interval(svg, left, point.ends, y, look.color);
      mark(svg, point.place, look, look.ours ? 1.15 : 1);
      if (point.row[at.doubt]) node("circle", { cx: left, cy: top, r: 8, class: "doubt" }, svg);
    }
  }
}

function bars(svg, all, x, y) {
  const present = looks.filter((look) => all.some((point) => point.look === look));
  const wide = (x.band * 0.84) / present.length;
  const base = y.place(0);
  for (const point of all) {
    const left = x.place(point.x) - x.band * 0.42 + wide * present.indexOf(point.look);
    const top = y.place(point.value);
    node("rect", { x: left + 0.5, y: Math.min(top, base), width: Math.max(wide - 1, 1), height: Math.max(Math.abs(base - top), 1), fill: point.look.color }, svg);
    interval(svg, left + wide / 2, point.ends, y, "var(--soft)");
    if (point.row[at.doubt]) node("text", { x: left + wide / 2, y: top - 6, "text-anchor": "middle", class: "mark" }, svg, "!");
    point.place = [left + wide / 2, top];
  }
}

// What the papers measured stands below, on an axis of its own: machines of then and now differ a thousandfold.
function papers(panel, old, x, width) {
  const inside = old.filter(([place]) => x.has(place));
  const beyond = old.length - inside.length;
  const box = document.createElement("div");
  box.className = "then";
  box.hidden = !then.checked;
  const words_ = document.createElement("div");
  words_.className = "unit";
  words_.textContent = `then (papers, ${panel.years}), ${panel.unit}` + (beyond ? `; ${beyond} more at sizes beyond these` : "");
  box.append(words_);
  if (!inside.length) return [box, []];
  const height = 150;
  const svg = node("svg", { viewBox: `0 0 ${width} ${height}`, tabindex: 0, role: "img", "aria-label": words_.textContent });
  const values = inside.map(([, value]) => value);
  const y = logarithmic(Math.min(...values) / 1.3, Math.max(...values) * 1.3, [height - MARGIN.bottom, MARGIN.top]);
  frame(svg, x, y, width, height, x.title);
  const drawn = inside.map(([place, value, text]) => {
    const where = [x.place(place), y.place(value)];
    mark(svg, where, { mark: "circle-open", color: "var(--then)" }, 0.8);
    return { place: where, text: words[text].split("\n") };
  });
  box.append(svg);
  listen(svg, drawn, width);
  return [box, drawn];
}

function legend(all, hidden, redraw) {
  const list = document.createElement("div");
  list.className = "legend";
  const present = looks.filter((look) => all.some((point) => point.look === look));
  for (const look of present) {
    const item = document.createElement("button");
    item.type = "button";
    item.setAttribute("aria-pressed", !hidden.has(look));
    const sign = node("svg", { viewBox: "-7 -7 14 14", width: 14, height: 14, "aria-hidden": "true" });
    mark(sign, [0, 0], look, 1.1);
    item.append(sign, look.label);
    item.onclick = () => { hidden.has(look) ? hidden.delete(look) : hidden.add(look); redraw(look); };
    item.ondblclick = () => {
      const alone = present.every((other) => hidden.has(other) === (other !== look));
      hidden.clear();
      if (!alone) present.filter((other) => other !== look).forEach((other) => hidden.add(other));
      redraw(look);
    };
    list.append(item);
  }
  return list;
}

function draw(box, focus) {
  const [number, choice] = box.dataset.from.split("-").map(Number);
  const figure = figures[number], panel = figure.panels[choice];
  const hidden = (box.without ??= new Set());
  const every = points(figure, panel);
  const all = every.filter((point) => !hidden.has(point.look));
  const width = Math.max(box.clientWidth, 240), height = box.closest(".plot").matches(":first-child") && width > 560 ? 440 : 310;
  const unit = document.createElement("div");
  unit.className = "unit";
  unit.textContent = figure.axis;
  const svg = node("svg", { viewBox: `0 0 ${width} ${height}`, tabindex: 0, role: "img", "aria-label": `${figure.title}; arrow keys go through the points` });
  box.drawn = width;
  const names = legend(every, hidden, (look) => draw(box, look.label));
  box.replaceChildren(names, unit, svg);
  if (all.length) {
    const x = horizontal(figure, all, width), y = vertical(figure, all, height);
    frame(svg, x, y, width, height, x.title);
    (figure.over === "bytes" ? curves : bars)(svg, all, x, y);
    all.sort((a, b) => looks.indexOf(a.look) - looks.indexOf(b.look) || a.x - b.x);
    listen(svg, all.map((point) => ({ place: point.place, text: describe(figure, point) })), width);
    if (panel.then.length) box.append(papers({ years: panel.years, unit: figure.bandwidth ? "GB/s" : "us" }, panel.then, x, width)[0]);
  }
  if (focus) [...names.children].find((item) => item.textContent === focus)?.focus();
}

function describe(figure, { row, look, value, ends }) {
  const lines = [look.label, `${words[row[at.size]]}, ${row[at.tasks]} ${row[at.tasks] === 1 ? "task" : "tasks"}`];
  if (figure.bandwidth) lines.push(`${significant(value)} GB/s (95 %: ${ends.map((end) => significant(end)).join(" to ")})`);
  lines.push(`median ${shown(row)} (95 %: ${significant(row[at.low])} to ${significant(row[at.high])})`, `99 % quantile ${significant(row[at.p99])}`,
    `samples: ${row[at.samples]}, launches: ${row[at.launches]}`);
  if (words[row[at.path]]) lines.push(`path: ${words[row[at.path]]}`);
  if (words[row[at.flags]]) lines.push(`flags: ${words[row[at.flags]]}`);
  return lines;
}

const tip = document.getElementById("tip");

function tell(svg, point) {
  tip.replaceChildren(...point.text.map((line, number) => Object.assign(document.createElement(number ? "div" : "b"), { textContent: line })));
  tip.hidden = false;
  const box = svg.getBoundingClientRect(), scale = box.width / svg.viewBox.baseVal.width;
  const left = box.left + point.place[0] * scale, top = box.top + point.place[1] * scale;
  tip.style.left = `${Math.max(8, Math.min(left + 12, innerWidth - tip.offsetWidth - 8)) + scrollX}px`;
  tip.style.top = `${(top + 14 + tip.offsetHeight > innerHeight ? Math.max(8, top - tip.offsetHeight - 14) : top + 14) + scrollY}px`;
}

// Pointing at a mark or going there by arrow keys tells all about it.
function listen(svg, all, width) {
  let now = -1;
  svg.addEventListener("pointermove", (event) => {
    const box = svg.getBoundingClientRect(), scale = width / box.width;
    const [x, y] = [(event.clientX - box.left) * scale, (event.clientY - box.top) * scale];
    const far = all.map(({ place }) => Math.hypot(place[0] - x, place[1] - y));
    const nearest = far.indexOf(Math.min(...far));
    if (far[nearest] < 28) tell(svg, all[(now = nearest)]);
    else tip.hidden = true;
  });
  svg.addEventListener("pointerleave", () => { tip.hidden = true; });
  svg.addEventListener("blur", () => { tip.hidden = true; });
  svg.addEventListener("keydown", (event) => {
    const step = { ArrowRight: 1, ArrowDown: 1, ArrowLeft: -1, ArrowUp: -1 }[event.key];
    if (event.key === "Escape") tip.hidden = true;
    if (!step) return;
    event.preventDefault();
    now = (now + step + all.length) % all.length;
    tell(svg, all[now]);
  });
}

const visible = () => document.querySelectorAll(".panel:not([hidden])");
visible().forEach((box) => draw(box));
addEventListener("resize", () => visible().forEach((box) => { if (box.drawn !== Math.max(box.clientWidth, 240)) draw(box); }));

for (const choice of document.querySelectorAll(".choices :is(input, select)")) {
  choice.addEventListener("change", () => {
    const panels = choice.closest(".plot").querySelectorAll(".panel");
    panels.forEach((panel, number) => { panel.hidden = number !== Number(choice.value); });
    draw(panels[choice.value]);
  });
}

if (then) then.addEventListener("change", () => document.querySelectorAll(".then").forEach((box) => { box.hidden = !then.checked; }));

// The table has a row for each row of the race; it is made when somebody opens it.
const table = document.getElementById("all");
const body = table.tBodies[0];
const COLUMNS = [
  ["operation", (row) => words[row[at.operation]] + (words[row[at.network]] === "local" ? "" : ` (${words[row[at.network]]})`)],
  ["look", (row) => looks[row[at.look]].name],
  ["tasks", (row) => row[at.tasks]], ["bytes", (row) => words[row[at.size]]], ["metric", (row) => words[row[at.metric]]],
  ["median", (row) => (row[at.launches] ? shown(row) : "failed")],
  ["low", (row) => (row[at.launches] ? `${significant(row[at.low])} – ${significant(row[at.high])}` : "")],
  ["p99", (row) => (row[at.launches] ? significant(row[at.p99]) : "")], ["least", (row) => (row[at.launches] ? significant(row[at.least]) : "")],
  ["launches", (row) => row[at.launches]], ["flags", (row) => words[row[at.path]]],
];
const NUMBERS = ["tasks", "bytes", "median", "low", "p99", "least", "launches"];

function line(row) {
  const made = document.createElement("tr");
  for (const [name, text] of COLUMNS) {
    const cell = document.createElement("td");
    if (NUMBERS.includes(name)) cell.className = "n";
    if (name === "look") cell.append(Object.assign(document.createElement("i"), { style: `background:${looks[row[at.look]].color}` }));
    cell.append(String(text(row)));
    if (name === "median" && !row[at.launches]) cell.classList.add("failed");
    if (name === "flags" && words[row[at.flags]]) cell.append(" ", Object.assign(document.createElement("b"), { className: "flag", textContent: words[row[at.flags]] }));
    made.append(cell);
  }
  return made;
}

let listed = [...rows];
function list() {
  const asked = document.getElementById("filter").value.toLowerCase().split(/\s+/);
  const of = (row) => COLUMNS.map(([, text]) => text(row)).join(" ").toLowerCase() + ` ${looks[row[at.look]].label} ${words[row[at.flags]]}`.toLowerCase();
  body.replaceChildren(...listed.filter((row) => asked.every((word) => of(row).includes(word))).map(line));
}

table.closest("details").addEventListener("toggle", () => { if (!body.rows.length) list(); });
document.getElementById("filter").addEventListener("input", list);
table.querySelectorAll("th").forEach((head, column) => head.firstChild.addEventListener("click", () => {
  const down = head.getAttribute("aria-sort") === "ascending";
  const [name, text] = COLUMNS[column];
  const order = NUMBERS.includes(name) ? (a, b) => a[at[name]] - b[at[name]] : (a, b) => text(a).localeCompare(text(b), "en", { numeric: true });
  table.querySelectorAll("th").forEach((other) => other.removeAttribute("aria-sort"));
  head.setAttribute("aria-sort", down ? "descending" : "ascending");
  listed.sort((a, b) => (down ? order(b, a) : order(a, b)));
  list();
}));
