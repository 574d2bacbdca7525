"use strict";
(() => {
  const data = JSON.parse(document.getElementById("data").textContent);
  const box = document.getElementById("line");
  if (!box || !data.tasks) return;
  const canvas = box.querySelector("canvas"), hint = box.querySelector(".hint"), pen = canvas.getContext("2d");
  const LEFT = 56, TOP = 24, ARROWS = 3000;
  const row = Math.max(16, Math.min(44, 900 / data.tasks.length));
  const style = name => getComputedStyle(document.documentElement).getPropertyValue(name).trim();
  const kinds = ["--send", "--receive", "--wait", "--collective", "--other"];
  const whole = data.span;
  let [from, to] = whole, width = 0;
  const place = new Map(data.tasks.map((task, at) => [task.task, at]));
  const x = time => LEFT + (time - from) / (to - from) * (width - LEFT - 8);
  const y = at => TOP + at * row;
  const unit = us => us >= 1e6 ? (us / 1e6).toPrecision(4) + " s" : us >= 1e3 ? (us / 1e3).toPrecision(4) + " ms" : us.toFixed(2) + " us";

  // The first entry of a list by time that ends at or behind a moment. Entries hardly overlap.
  const first = (list, time) => {
    let low = 0, high = list.length;
    while (low < high) { const at = (low + high) >> 1; if (list[at][1] < time) low = at + 1; else high = at; }
    return low;
  };

  const axis = () => {
    const step = Math.pow(10, Math.floor(Math.log10((to - from) / 4)));
    const wide = (to - from) / step > 10 ? step * 2 : step;
    pen.fillStyle = style("--soft"); pen.strokeStyle = style("--line"); pen.textAlign = "center";
    for (let time = Math.ceil(from / wide) * wide; time <= to; time += wide) {
      pen.fillText(unit(time), Math.min(x(time), width - 30), 14);
      pen.beginPath(); pen.moveTo(x(time), TOP - 4); pen.lineTo(x(time), y(data.tasks.length)); pen.stroke();
    }
  };

  // Calls that are narrower than a pixel are one bar together.
  const bars = (list, top, height, colour) => {
    let last = -1;
    for (let at = first(list, from); at < list.length && list[at][0] <= to; at++) {
      const left = Math.max(LEFT, x(list[at][0])), right = Math.max(left + 1, Math.min(width, x(list[at][1])));
      if (right <= last) continue;
      pen.fillStyle = colour(list[at]);
      pen.fillRect(Math.max(left, last), top, right - Math.max(left, last), height);
      last = right;
    }
  };

  const draw = () => {
    const scale = window.devicePixelRatio || 1, height = TOP + data.tasks.length * row + 6;
    width = box.clientWidth;
    canvas.style.height = height + "px"; canvas.width = width * scale; canvas.height = height * scale;
    pen.setTransform(scale, 0, 0, scale, 0, 0); pen.font = "12px system-ui, sans-serif";
    pen.clearRect(0, 0, width, height);
    axis();
    const colours = kinds.map(style), computing = style("--computing"), text = style("--text");
    data.tasks.forEach((task, at) => {
      const top = y(at) + 2, tall = row - 5;
      pen.fillStyle = style("--soft"); pen.textAlign = "right"; pen.fillText(task.task, LEFT - 8, top + tall / 2 + 4);
      bars([task.life], top, tall, () => computing);
      bars(task.calls, top, tall, call => colours[data.kinds[call[2]]]);
      bars(task.toggles, top + tall - 4, 4, () => text);
      pen.fillStyle = text;
      for (const mark of task.marks) if (mark[0] >= from && mark[0] <= to) {
        const at = x(mark[0]);
        pen.beginPath(); pen.moveTo(at, top + 6); pen.lineTo(at - 4, top); pen.lineTo(at + 4, top); pen.fill();
      }
    });
    const seen = data.arrows.filter(arrow => arrow[3] >= from && arrow[1] <= to);
    pen.strokeStyle = text; pen.lineWidth = 0.8; pen.globalAlpha = seen.length > 400 ? 0.3 : 0.8;
    if (seen.length <= ARROWS) for (const arrow of seen) {
      const start = place.get(arrow[0]), end = place.get(arrow[2]);
      if (start === undefined || end === undefined) continue;
      pen.beginPath(); pen.moveTo(Math.max(LEFT, x(arrow[1])), y(start) + row / 2); pen.lineTo(x(arrow[3]), y(end) + row / 2); pen.stroke();
    }
    pen.globalAlpha = 1;
    pen.clearRect(0, TOP, 0, 0);
    const many = seen.length > ARROWS ? ` (${seen.length} messages: enlarge to see them)` : "";
    hint.textContent = `${unit(from)} to ${unit(to)}${many}`;
  };

  const show = (low, high) => {
    const most = whole[1] - whole[0], wide = Math.min(most, Math.max(0.05, high - low));
    from = Math.max(whole[0], Math.min(low, whole[1] - wide)); to = from + wide;
    requestAnimationFrame(draw);
  };
  const at = event => from + (event.offsetX - LEFT) / (width - LEFT - 8) * (to - from);

  canvas.addEventListener("wheel", event => {
    event.preventDefault();
    const middle = at(event), factor = Math.pow(1.0015, event.deltaY);
    show(middle - (middle - from) * factor, middle + (to - middle) * factor);
  }, { passive: false });
  canvas.addEventListener("dblclick", () => show(whole[0], whole[1]));
  canvas.addEventListener("pointermove", event => {
    if (event.buttons) {
      const moved = event.movementX / (width - LEFT - 8) * (to - from);
      return show(from - moved, to - moved);
    }
    const task = data.tasks[Math.floor((event.offsetY - TOP) / row)], time = at(event);
    if (!task) return;
    const near = (to - from) / width * 3;
    const mark = task.marks.find(mark => Math.abs(mark[0] - time) < near);
    const on = task.toggles.filter(toggle => toggle[0] <= time && time <= toggle[1]).map(toggle => toggle[2]).join(", ");
    const call = task.calls[first(task.calls, time)];
    let said = "computing";
    if (call && call[0] <= time) {
      said = `${data.names[call[2]]}, ${unit(call[1] - call[0])} from ${unit(call[0])}` + (call[4] >= 0 ? `, task ${call[4]}, tag ${call[5]}` : "") +
        (call[3] ? `, ${call[3]} B` : "") + (call[6] ? ", failed" : "");
    }
    hint.textContent = `task ${task.task} at ${unit(time)}: ${said}` + (on ? `; on: ${on}` : "") + (mark ? `; mark: ${mark[1]}` : "");
  });
  window.addEventListener("resize", draw);
  matchMedia("(prefers-color-scheme: dark)").addEventListener("change", draw);
  draw();
})();
