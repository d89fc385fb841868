// Cores of each class over time, stacked; beneath it jobs, price and cost.

import { band, canvas, coreTicks, linear, steps, ticks, timeTicks, xAxis, yAxis } from "./charts.js";
import { byId, draw, make, paint, say, setAttribute } from "./dom.js";
import { clock, counted, day, number } from "./format.js";

const SPANS = [["5 min", 300], ["1 h", 3600], ["1 d", 86400], ["all", Infinity]];
const SHORTEST = 30;
const MARGIN = { left: 40, right: 12, top: 10, bottom: 22 };

export class Timeline {
  constructor(history, colourOf) {
    this.history = history;
    this.colourOf = colourOf;
    this.span = 300;
    this.cursor = null;
    this.now = 0;
    this.svg = byId("cores-chart");
    for (const [name, seconds] of SPANS) {
      const button = make("button", { type: "button", "aria-pressed": String(seconds === this.span), text: name });
      button.addEventListener("click", () => this.choose(seconds, button));
      byId("spans").append(button);
    }
    this.svg.addEventListener("pointermove", (event) => this.point(event));
    this.svg.addEventListener("pointerleave", () => this.pointAt(null));
    this.svg.addEventListener("keydown", (event) => this.key(event));
    this.svg.addEventListener("blur", () => this.pointAt(null));
    new ResizeObserver(() => this.draw(this.now)).observe(this.svg.parentElement);
  }

  choose(seconds, chosen) {
    this.span = seconds;
    for (const button of byId("spans").children) button.setAttribute("aria-pressed", button === chosen);
    this.draw(this.now);
  }

  draw(now) {
    this.now = now;
    const { times } = this.history.machine;
    if (!times.length) return;
    const age = Math.max(now - times[0], SHORTEST);
    this.from = now - Math.min(this.span, age);
    this.drawCores();
    const waiting = { name: "waiting", values: "waiting" };
    this.drawLines("jobs-chart", "Jobs", [{ name: "present", values: "jobs" }, waiting], true);
    this.drawLines("price-chart", "Price of a core", [{ name: "", values: "price" }], false);
    const bound = { name: "lower bound", values: "bound" };
    this.drawLines("cost-chart", "Cost per job", [{ name: "so far", values: "cost" }, bound], false);
    this.drawCursor();
  }

  // The samples that are to be seen: times no earlier than the left end, and the columns.
  seen(track, names) {
    const first = Math.max(track.at(this.from), 0);
    const times = track.times.slice(first).map((time) => Math.max(time, this.from));
    return [times, names.map((name) => track.values(name).slice(first))];
  }

  time(area) {
    this.x = linear(this.from, this.now, area.left, area.right);
    const { step, times } = timeTicks(this.from, this.now, (area.right - area.left) / 80);
    return xAxis(area, this.x, times, (time) => (step < 86400 ? clock(time, step < 60) : day(time)));
  }

  drawCores() {
    const area = canvas(this.svg, this.svg.clientWidth < 500 ? 200 : 260, MARGIN);
    this.area = area;
    const names = [...this.history.classes.columns.keys()].sort((a, b) => this.colourOf(a) - this.colourOf(b));
    const [times, columns] = this.seen(this.history.classes, names);
    const [machineTimes, [cores]] = this.seen(this.history.machine, ["cores"]);
    const most = Math.max(1, ...cores);
    const marks = coreTicks(most);
    const y = linear(0, most * 1.04, area.bottom, area.top);
    const axis = this.time(area);
    const shapes = [];
    let low = times.map(() => 0);
    names.forEach((name, k) => {
      const high = low.map((value, i) => value + columns[k][i]);
      if (columns[k].some((value) => value > 0)) {
        const shape = draw("path", { class: "share", d: band(times, low, high, this.now, this.x, y) });
        paint(shape, this.colourOf(name));
        shapes.push(shape);
      }
      low = high;
    });
    const all = draw("path", { class: "all-cores", d: steps(machineTimes, cores, this.now, this.x, y) });
    this.line = draw("line", { class: "cursor", y1: area.top, y2: area.bottom, visibility: "hidden" });
    this.svg.replaceChildren(...yAxis(area, y, marks, String), ...shapes, all, ...axis, this.line);
    const last = names.map((name, k) => `${name} ${number(columns[k].at(-1) ?? 0)}`);
    const text = `Cores over time, stacked by class, since ${clock(this.from, true)}; now ${last.join(", ") || "none"} `
      + `of ${number(cores.at(-1))}. Arrow keys read values.`;
    setAttribute(this.svg, "aria-label", text);
  }

  drawLines(id, title, series, whole) {
    const svg = byId(id);
    const area = canvas(svg, 130, { ...MARGIN, left: 52 });
    const [times, columns] = this.seen(this.history.machine, series.map((one) => one.values));
    const marks = ticks(Math.max(...columns.flat().map((value) => value ?? 0), whole ? 1 : 0), 3, whole);
    const y = linear(0, marks.at(-1), area.bottom, area.top);
    const axis = this.time(area);
    const lines = columns.map((values, k) => draw("path", {
      class: `line ${k ? "line-b" : "line-a"}`,
      d: steps(times, values, this.now, this.x, y),
    }));
    const known = columns.some((values) => values.some((value) => value !== null));
    const none = draw("text", {
      class: "tick", x: (area.left + area.right) / 2, y: (area.top + area.bottom) / 2, "text-anchor": "middle",
      text: known ? "" : "not known yet",
    });
    const scale = known ? yAxis(area, y, marks, (value) => number(value)) : [];
    svg.replaceChildren(...scale, ...lines, ...axis, none);
    const last = series.map((one, k) => `${one.name} ${number(columns[k].at(-1))}`.trim());
    setAttribute(svg, "aria-label", `${title} over time; now ${last.join(", ")}`);
  }

  point(event) {
    const box = this.svg.getBoundingClientRect();
    const share = (event.clientX - box.left - this.area.left) / (this.area.right - this.area.left);
    this.pointAt(share >= 0 && share <= 1 ? this.from + share * (this.now - this.from) : null);
  }

  key(event) {
    const way = { ArrowLeft: -1, ArrowRight: 1 }[event.key];
    if (!way) return;
    event.preventDefault();
    const time = (this.cursor ?? this.now) + (way * (this.now - this.from)) / 50;
    this.pointAt(Math.min(Math.max(time, this.from), this.now));
  }

  pointAt(time) {
    this.cursor = time;
    this.drawCursor();
  }

  // The line under the pointer, and in words what it points at; the present without one.
  drawCursor() {
    if (!this.area) return;
    if (this.cursor !== null && this.cursor < this.from) this.cursor = null;
    const time = this.cursor ?? this.now;
    const x = linear(this.from, this.now, this.area.left, this.area.right)(time);
    setAttribute(this.line, "visibility", this.cursor === null ? "hidden" : "visible");
    setAttribute(this.line, "x1", x);
    setAttribute(this.line, "x2", x);
    const { classes, machine } = this.history;
    const [i, j] = [classes.at(time), machine.at(time)];
    const parts = [...classes.columns].filter(([, values]) => (values[i] ?? 0) > 0);
    const widths = parts.map(([name, values]) => `${name} ${number(values[i])}`);
    const jobs = j < 0 ? 0 : Math.round(machine.values("jobs")[j]);
    const readout = byId("readout");
    say(readout, `${clock(time, true)}  ${widths.join(" · ") || "all cores free"}  (${counted(jobs, "job")})`);
    setAttribute(readout, "aria-live", this.cursor === null ? "off" : "polite");
  }
}
