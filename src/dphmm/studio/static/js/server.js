// Talking to the studio's own server, and nobody else.

import { isWork, work } from "./work.js";

const token = document.querySelector('meta[name="studio-token"]').content;

export class Refused extends Error {
  constructor(status, sentence) {
    super(sentence);
    this.status = status;
  }
}

const far = (job) => post("/api/progress", { job });

// `signal`: ends it from outside.
export function ask(path, body, signal) {
  return isWork(path) ? work(path, (own, job) => post(path, { ...body, job }, signal ? AbortSignal.any([signal, own]) : own), far) : post(path, body, signal);
}

// Without an answer there is no status: nothing is known to be wrong with what was asked.
async function send(path, body, signal) {
  const headers = { "content-type": "application/json", "x-dphmm-studio": token };
  try {
    return await fetch(path, { method: "POST", headers, body: JSON.stringify(body), signal });
  } catch (error) {
    if (error.name === "AbortError") throw error;
    throw new Error("The studio's server does not answer; is dphmm studio still running?", { cause: error });
  }
}

async function post(path, body, signal) {
  const response = await send(path, body, signal);
  const answer = await response.json().catch((error) => {
    if (error.name === "AbortError") throw error;
    return { error: "the server gave no answer" };
  });
  if (!response.ok) throw new Refused(response.status, answer.error);
  return answer;
}

// One request at a time for each purpose; while one runs, only the newest of the others waits.
// A slider so redraws as fast as the server answers, and never shows an old answer last.
export function oneAtATime(run) {
  let busy = false;
  let waiting = null;
  async function go(given) {
    busy = true;
    try {
      await run(given);
    } finally {
      busy = false;
      if (waiting) {
        const next = waiting;
        waiting = null;
        go(next.given);
      }
    }
  }
  return (given) => {
    if (busy) waiting = { given };
    else go(given);
  };
}

export async function askForFile(path, body) {
  const response = await send(path, body);
  if (!response.ok) throw new Refused(response.status, (await response.json()).error);
  return response.blob();
}
