// The table of jobs: a row each, which opens to show more. Rows stay the same elements while jobs change.

import { band, canvas, coreTicks, linear, timeTicks, xAxis, yAxis } from "./charts.js";
import { byId, draw, make, paint, say, setAttribute } from "./dom.js";
import { clock, counted, duration, number, percent } from "./format.js";

const MOST_ROWS = 200;
const COLUMNS = ["Job", "Class", "Cores", "Width over time", "Progress", "Left", "Age", "Weight"];
const NUMBERS = new Set(["Cores", "Left", "Age", "Weight"]);
const SPARK = { width: 120, height: 24 };

export class JobTable {
  constructor(history, colourOf, access) {
    this.history = history;
    this.colourOf = colourOf;
    this.access = access;
    this.table = byId("jobs");
    this.body = this.table.tBodies[0];
    this.rows = new Map();
  }

  show(jobs, present, now) {
    this.now = now;
    const order = [...jobs].sort((a, b) => rank(a) - rank(b));
    const shown = order.slice(0, MOST_ROWS);
    const ids = new Set(shown.map((job) => job.id));
    for (const [id, row] of this.rows) {
      if (ids.has(id)) continue;
      row.remove();
      this.rows.delete(id);
    }
    let before = null;
    for (const job of shown) {
      if (!this.rows.has(job.id)) this.rows.set(job.id, new Row(this, job));
      const row = this.rows.get(job.id);
      row.show(job, now);
      row.placeAfter(before, this.body);
      before = row;
    }
    byId("connecting").hidden = true;
    this.table.hidden = present === 0;
    byId("no-jobs").hidden = present > 0;
    const left = present - shown.length;
    byId("more-rows").hidden = left === 0;
    say(byId("more-rows"), `and ${counted(left, "more job")}; malleable status lists them all`);
  }

  allowChanges() {
    for (const row of this.rows.values()) row.allowChanges();
  }
}

function rank(job) {
  return { running: 0, paused: 1, queued: 2 }[job.state] ?? 3;
}

class Row {
  constructor(owner, job) {
    this.owner = owner;
    this.id = job.id;
    this.cells = new Map(COLUMNS.map((name) => {
      const tag = name === "Job" ? "th" : "td";
      // Roles are named, as browsers forget those of a table that is laid out otherwise, as on a phone.
      const role = tag === "th" ? "rowheader" : "cell";
      return [name, make(tag, { role, "data-label": name, class: NUMBERS.has(name) ? "number" : null })];
    }));
    this.row = make("tr", { role: "row", class: "job" }, ...this.cells.values());
    this.fill(job);
    this.detail = null;
  }

  fill(job) {
    this.button = make("button", { type: "button", class: "open", "aria-expanded": "false" });
    this.command = make("span", { class: "command" });
    this.button.append(make("span", { class: "name", text: job.id }), this.command);
    this.button.addEventListener("click", () => this.toggle());
    this.cells.get("Job").append(this.button);
    this.swatch = make("span", { class: "swatch", "aria-hidden": "true" });
    this.className = make("span", { class: "name" });
    this.cells.get("Class").append(this.swatch, this.className);
    this.spark = draw("path", { class: "share" });
    this.cells.get("Width over time").append(draw("svg", {
      class: "spark", viewBox: `0 0 ${SPARK.width} ${SPARK.height}`, preserveAspectRatio: "none", "aria-hidden": "true",
    }, this.spark));
    this.progress = make("progress", { max: 1, "aria-label": "Progress" });
    this.done = make("span", { class: "done" });
    this.cells.get("Progress").append(this.progress, this.done);
  }

  show(job, now) {
    this.job = job;
    setAttribute(this.row, "data-state", job.state);
    say(this.command, commandOf(job));
    say(this.className, job.class);
    paint(this.swatch, this.owner.colourOf(job.class));
    say(this.cells.get("Cores"), coresOf(job));
    setAttribute(this.cells.get("Cores"), "data-unit", job.granted === 1 ? "core" : "cores");
    this.progress.hidden = job.progress === null;
    if (job.progress !== null) this.progress.value = job.progress;
    say(this.done, job.progress === null ? "–" : percent(Math.floor(job.progress * 100) / 100));
    const left = job.speed > 0 && job.remaining !== null ? job.remaining / job.speed : null;
    say(this.cells.get("Left"), left !== null && job.remaining_estimated ? `≈ ${duration(left)}` : duration(left));
    say(this.cells.get("Age"), duration(job.age));
    say(this.cells.get("Weight"), number(job.weight));
    this.showSpark(now);
    if (this.detail) this.detail.show(job, now);
  }

  showSpark(now) {
    const track = this.owner.history.jobs.get(this.id);
    if (!track?.times.length) return;
    const from = Math.max(track.times[0], now - 600);
    const first = Math.max(track.at(from), 0);
    const times = track.times.slice(first).map((time) => Math.max(time, from));
    const values = track.values("granted").slice(first);
    const x = linear(from, Math.max(now, from + 1e-3), 0, SPARK.width);
    const y = linear(0, Math.max(1, ...values), SPARK.height, 1);
    this.spark.setAttribute("d", band(times, values.map(() => 0), values, now, x, y));
    paint(this.spark, this.owner.colourOf(this.job.class));
  }

  placeAfter(before, body) {
    const last = before && (before.detail ? before.detail.row : before.row);
    const next = last ? last.nextSibling : body.firstChild;
    if (next === this.row) return;
    body.insertBefore(this.row, next);
    if (this.detail) this.row.after(this.detail.row);
  }

  toggle() {
    if (this.detail) {
      this.detail.row.remove();
      this.detail = null;
    } else {
      this.detail = new Detail(this);
      this.row.after(this.detail.row);
      this.detail.show(this.job, this.owner.now);
    }
    this.button.setAttribute("aria-expanded", this.detail !== null);
  }

  allowChanges() {
    if (this.detail) this.detail.allowChanges();
  }

  remove() {
    this.row.remove();
    if (this.detail) this.detail.row.remove();
  }
}

function commandOf(job) {
  return job.command ? [job.command].flat().join(" ") : "";
}

function coresOf(job) {
  if (job.state !== "running") return job.state;
  if (job.target !== job.granted) return `${job.granted} → ${job.target}`;
  return job.in_use === job.granted ? String(job.granted) : `${job.granted} (uses ${job.in_use})`;
}

let details = 0;

class Detail {
  constructor(row) {
    this.owner = row.owner;
    this.id = row.id;
    details += 1;
    this.facts = make("dl", { class: "facts-of-job" });
    this.values = new Map();
    this.svg = draw("svg", { role: "img" });
    this.said = make("p", { class: "quiet", role: "status" });
    this.changes = this.makeChanges(`weight-${details}`);
    const chart = make("figure", {}, make("figcaption", { text: "Cores granted" }), this.svg);
    const cell = make("td", { role: "cell", colspan: COLUMNS.length }, this.facts, chart, this.changes, this.said);
    this.row = make("tr", { role: "row", class: "detail", id: `detail-${details}` }, cell);
    row.button.setAttribute("aria-controls", this.row.id);
    this.allowChanges();
  }

  fact(name, text) {
    if (!this.values.has(name)) {
      this.values.set(name, make("dd"));
      this.facts.append(make("div", {}, make("dt", { text: name }), this.values.get(name)));
    }
    say(this.values.get(name), text);
  }

  show(job, now) {
    this.fact("State", job.state);
    this.fact("Cores", `${job.granted} granted, ${job.in_use} in use, ${job.target} wanted by the policy`);
    if (job.cpus.length) this.fact("CPUs", job.cpus.join(", "));
    if (job.units) this.fact("Units", `${number(job.units_done)} of ${number(job.units)}`);
    else if (job.units_done) this.fact("Units", `${number(job.units_done)} done`);
    this.fact("Work left", `${job.remaining_estimated ? "≈ " : ""}${duration(job.remaining)} on one core`);
    if (job.over_share !== null && job.promised_share)
      this.fact("Over its equal share", `${number(job.over_share)} times its work, ${number(job.promised_share)} promised`);
    this.fact("Kind", job.kind);
    if (job.command) this.fact("Command", commandOf(job));
    this.drawWidth(now);
  }

  drawWidth(now) {
    const track = this.owner.history.jobs.get(this.id);
    if (!track?.times.length || !this.row.isConnected) return;
    const area = canvas(this.svg, 120, { left: 34, right: 12, top: 8, bottom: 22 });
    const values = track.values("granted");
    const from = track.times[0];
    const end = Math.max(now, from + 1);
    const most = Math.max(1, ...values);
    const x = linear(from, end, area.left, area.right);
    const y = linear(0, most, area.bottom, area.top);
    const { step, times } = timeTicks(from, end, (area.right - area.left) / 90);
    const shape = draw("path", { class: "share", d: band(track.times, values.map(() => 0), values, end, x, y) });
    paint(shape, this.owner.colourOf(this.owner.rows.get(this.id).job.class));
    const marks = coreTicks(most);
    const axis = xAxis(area, x, times, (time) => clock(time, step < 60));
    this.svg.replaceChildren(...yAxis(area, y, marks, String), shape, ...axis);
    setAttribute(this.svg, "aria-label", `Cores granted since ${clock(from, true)}, now ${values.at(-1)}, at most ${number(most)}`);
  }

  makeChanges(id) {
    const weight = make("input", { id, type: "number", min: "0", step: "any", inputmode: "decimal", required: true });
    const form = make("form", { class: "changes" },
      make("label", { for: id, text: "Weight" }), weight, make("button", { type: "submit", text: "Change" }));
    form.addEventListener("submit", (event) => {
      event.preventDefault();
      this.ask("PATCH", { weight: Number(weight.value) }, `weight is ${weight.value} now`);
    });
    const cancel = make("button", { type: "button", class: "danger", text: "Cancel this job" });
    let sure = false;
    const calm = () => {
      sure = false;
      say(cancel, "Cancel this job");
    };
    cancel.addEventListener("blur", calm);
    cancel.addEventListener("click", () => {
      if (sure) {
        calm();
        this.ask("DELETE", undefined, "asked to end");
      } else {
        sure = true;
        say(cancel, "Cancel it: press again");
      }
    });
    form.append(cancel);
    return form;
  }

  async ask(method, body, done) {
    say(this.said, "…");
    const wrong = await this.owner.access.change(method, this.id, body);
    say(this.said, wrong ? `Not done: ${wrong}` : done);
  }

  allowChanges() {
    this.changes.hidden = this.owner.access.token === "";
  }
}
