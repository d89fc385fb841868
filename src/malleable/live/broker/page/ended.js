// Programs that have ended, the last first, each with what it printed.

import { byId, make, say } from "./dom.js";
import { clock, day, duration } from "./format.js";

const MOST = 20;
const MOST_BYTES = 1 << 20;
const MOST_LINES = 200;
// A program is written down a little after its cores are free, so the list is read twice.
const READ_AFTER = [0, 2000];

export class Ended {
  constructor(access) {
    this.access = access;
    this.body = byId("ended").tBodies[0];
    this.rows = new Map();
    this.counts = "";
  }

  // Read the list again if more jobs have ended than before.
  show(counts) {
    const text = JSON.stringify(counts);
    if (text === this.counts) return;
    this.counts = text;
    for (const delay of READ_AFTER) setTimeout(() => this.read(), delay);
  }

  async read() {
    const { token } = this.access;
    const answer = await this.access.read(`v1/jobs?ended=${MOST}&present=false`);
    if (!answer?.ok || token !== this.access.token) return;
    const { jobs } = await answer.json();
    byId("ended-programs").hidden = jobs.length === 0;
    for (const job of jobs) if (!this.rows.has(job.id)) this.add(job);
    const ids = new Set(jobs.map((job) => job.id));
    for (const [id, rows] of this.rows) {
      if (ids.has(id)) continue;
      for (const row of rows) row.remove();
      this.rows.delete(id);
    }
  }

  // Read it anew: with another token more is told, or less.
  forget() {
    for (const rows of this.rows.values()) for (const row of rows) row.remove();
    this.rows.clear();
    this.read();
  }

  add(job) {
    const name = make("span", { class: "name", text: job.id });
    const command = make("span", { class: "command", text: job.command?.join(" ") ?? "" });
    const button = make("button", { type: "button", class: "open", "aria-expanded": "false" }, name, command);
    const log = make("pre", { class: "log", tabindex: "0" });
    const detail = make("tr", { class: "detail", hidden: true }, make("td", { colspan: 5 }, log));
    button.addEventListener("click", () => {
      detail.hidden = !detail.hidden;
      button.setAttribute("aria-expanded", String(!detail.hidden));
      if (!detail.hidden) this.showLog(job, log);
    });
    const how = job.exit_code ? `${job.state}, ${job.exit_code < 0 ? `signal ${-job.exit_code}` : job.exit_code}` : job.state;
    const row = make("tr", { class: "job", "data-state": job.state },
      make("th", {}, button),
      make("td", { "data-label": "Outcome", title: job.reason || null, text: how }),
      make("td", { "data-label": "Waited", class: "number", text: duration((job.started ?? job.ended) - job.submitted) }),
      make("td", { "data-label": "Took", class: "number", text: job.started === null ? "–" : duration(job.ended - job.started) }),
      make("td", { "data-label": "Ended", class: "number", text: `${day(job.ended)} ${clock(job.ended, true)}` }));
    this.body.prepend(row, detail);
    this.rows.set(job.id, [row, detail]);
  }

  async showLog(job, place) {
    if (job.removed && job.started !== null) {
      say(place, "Its log was removed, as it is kept no longer.");
      return;
    }
    say(place, "…");
    const [out, err] = await Promise.all(["out", "err"].map((stream) => this.log(job.id, stream)));
    say(place, [out, err].filter(Boolean).join("\n") || "It has printed nothing.");
  }

  async log(id, stream) {
    const answer = await this.access.read(`v1/jobs/${encodeURIComponent(id)}/log?stream=${stream}`);
    if (!answer) return "The broker does not answer.";
    if (answer.status === 401 || answer.status === 403) {
      return stream === "out" ? "Logs need the token: open “Read only” below, and paste it." : "";
    }
    return answer.ok ? tail(answer, `malleable logs ${id}`) : "";
  }
}

// The last lines of what an answer brings, of which not everything is read.
async function tail(answer, command) {
  const reader = answer.body.getReader();
  const decoder = new TextDecoder();
  let [text, read, more] = ["", 0, false];
  for (;;) {
    const { done, value } = await reader.read();
    if (done) break;
    text += decoder.decode(value, { stream: true });
    read += value.length;
    if (read < MOST_BYTES) continue;
    more = true;
    reader.cancel();
    break;
  }
  const lines = text.replace(/\n$/, "").split("\n");
  const shown = lines.slice(-MOST_LINES);
  if (more) shown.push(`… ${command} prints the rest`);
  else if (shown.length < lines.length) shown.unshift(`… ${command} prints what comes before`);
  return shown.join("\n");
}
