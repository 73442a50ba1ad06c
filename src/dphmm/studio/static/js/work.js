// Work that takes more than a moment: what it is, how far it is, and a button that ends it.

import { h, fill } from "./elements.js";

const PATIENCE = 900;
const OFTEN = 500;
// What goes on by itself while people do something else is not worth a word before this.
const BEHIND = 3000;
const QUIET = new Set(["/api/expected", "/api/tradeoff"]);
const NAMES = {
  "/api/open": "Opening the scenario",
  "/api/effects": "Working out who is exposed",
  "/api/released": "Repairing exposed places",
  "/api/repairs": "Comparing repairs",
  "/api/expected": "Trying it on simulated people",
  "/api/walk": "Releasing simulated people",
  "/api/timeline": "Looking ahead",
  "/api/tradeoff": "Working out the curve",
  "/api/between": "Comparing two versions",
};

const isLong = ({ path, began }, now) => now - began >= (QUIET.has(path) ? BEHIND : PATIENCE) - 50;
const running = new Map();
let timer = 0;

// Whether a request is one that may be shown and stopped.
export const isWork = (path) => path in NAMES;

// run(signal, job): the request; how(job): how far it is.
export async function work(path, run, how) {
  const job = crypto.randomUUID();
  const control = new AbortController();
  const entry = { path, how, control, began: performance.now(), far: null };
  running.set(job, entry);
  timer ||= setTimeout(look, PATIENCE);
  try {
    return await run(control.signal, job);
  } catch (error) {
    if (error.name === "AbortError") throw new Error(`${NAMES[path]} was stopped.`, { cause: error });
    throw error;
  } finally {
    running.delete(job);
    show();
  }
}

async function look() {
  timer = 0;
  if (!running.size) return;
  const now = performance.now();
  const long = [...running].filter(([, entry]) => isLong(entry, now));
  await Promise.all(
    long.map(async ([job, entry]) => {
      entry.far = await entry.how(job).catch(() => null);
    }),
  );
  show();
  if (running.size) timer ||= setTimeout(look, OFTEN);
}

// The oldest first; each with its own button. A line that is there already is only changed, so
// that a button keeps the focus.
function show() {
  const box = document.getElementById("work");
  const now = performance.now();
  const long = [...running].filter(([, entry]) => isLong(entry, now));
  box.hidden = !long.length;
  for (const line of box.querySelectorAll(".work-line")) if (!long.some(([job]) => job === line.dataset.job)) line.remove();
  for (const [job, { path, far, began, control }] of long) {
    let line = [...box.children].find((one) => one.dataset.job === job);
    if (!line) {
      line = h("div", { className: "work-line", "data-job": job }, h("span", {}), h("button", { type: "button", className: "small", onclick: () => control.abort() }, "Stop"));
      box.append(line);
    }
    const seconds = Math.round((now - began) / 1000);
    const part = far?.parts ? `${Math.floor((100 * far.done) / far.parts)}%, ` : "";
    fill(line.firstChild, `${NAMES[path]}: `, far?.parts ? h("progress", { value: far.done, max: far.parts, "aria-label": NAMES[path] }) : null, ` ${part}${seconds} s`);
  }
}
