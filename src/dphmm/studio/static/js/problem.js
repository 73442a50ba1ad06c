// What went wrong, in one sentence at the foot of the page.

import { h } from "./elements.js";

const box = document.getElementById("problem");
let timer = 0;

// `again`: what to do when somebody tries once more; until then the complaint stays.
export function complain(error, again = null) {
  const retry = again ? [" ", h("button", { type: "button", id: "retry", className: "small", onclick: again }, "Try again")] : [];
  box.hidden = false;
  box.replaceChildren(error.message, ...retry);
  clearTimeout(timer);
  if (again) return;
  timer = setTimeout(() => {
    box.hidden = true;
  }, 8000);
}

// There was an answer after all.
export function endComplaint() {
  if (document.getElementById("retry")) box.hidden = true;
}
