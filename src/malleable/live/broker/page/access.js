// The token, which allows to change something, and the requests that do.

import { byId, say } from "./dom.js";

const KEY = "malleable-token";

export class Access {
  constructor(onChange) {
    this.onChange = onChange;
    byId("access-form").addEventListener("submit", (event) => {
      event.preventDefault();
      this.keep(byId("token").value.trim());
    });
    byId("forget").addEventListener("click", () => this.keep(""));
    this.show();
  }

  get token() {
    return sessionStorage.getItem(KEY) ?? "";
  }

  keep(token) {
    if (token) sessionStorage.setItem(KEY, token);
    else sessionStorage.removeItem(KEY);
    byId("token").value = "";
    byId("access").open = false;
    this.show();
    this.onChange();
  }

  show() {
    const allowed = this.token !== "";
    say(byId("access-summary"), allowed ? "With token: weights can be changed and jobs cancelled" : "Read only: commands and logs need the token");
    byId("access-form").hidden = allowed;
    byId("forget").hidden = !allowed;
  }

  // Read what may need the token; nothing where the broker does not answer.
  async read(path, signal) {
    const headers = this.token ? { Authorization: `Bearer ${this.token}` } : {};
    return fetch(path, { headers, signal, cache: "no-store" }).catch(() => null);
  }

  // Ask for a change; returns what went wrong, in words, or nothing.
  async change(method, job, body) {
    try {
      const answer = await fetch(`v1/jobs/${encodeURIComponent(job)}`, {
        method,
        headers: { Authorization: `Bearer ${this.token}`, "Content-Type": "application/json" },
        body: body === undefined ? undefined : JSON.stringify(body),
      });
      if (answer.ok) return "";
      if (answer.status === 401 || answer.status === 403) return "the token is not accepted";
      return await answer.json().then((found) => detail(found) || answer.statusText, () => answer.statusText);
    } catch {
      return "the broker does not answer";
    }
  }
}

function detail(found) {
  for (const key of ["detail", "error", "problem"]) {
    if (typeof found?.[key] === "string") return found[key];
  }
  return "";
}
