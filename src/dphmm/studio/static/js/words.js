// Every term in one sentence, where it stands and all together.

import { h, fill } from "./elements.js";

export const WORDS = {
  state: "One of the places, pages or conditions that the person can be in; which one is the secret.",
  policy:
    "A graph over the states: an edge says that its two states must look alike to whoever reads a release.",
  edge: "Two states whose answers may differ in probability by at most a factor of e to the ε.",
  complete: "Every two states must look alike: the strongest policy, and the noisiest.",
  categories: "States of the same category must look alike; which category it is may become known.",
  distance: "States whose answers are close to each other must look alike; far apart ones need not.",
  "one-step": "States that can be reached in one step from the same state must look alike.",
  ε: "The price of an answer: the smaller, the more alike linked places look and the larger the noise.",
  limit: "The most that may be spent on one person, in all or within any window of time; beyond it nothing is said.",
  schedule: "When it speaks: fewer answers at a higher price each may tell more for the same budget.",
  error: "How far an answer is from the truth, on average over the noise.",
  silence: "How far off a guess is that knows the model but no answer, on average.",
  "root mean square": "The root of the expected squared distance between answer and truth, as dphmm check prints it.",
  "least error": "No mechanism that answers every point of the lattice under such a hull errs by less.",
  gamma: "Where the first step of a staircase ends, between 0 and 1; the best one is found by itself.",
  shape: "The body in whose shape noise is spread: the hull, a larger one with a smaller error, or Laplace's.",
  delta: "Above zero, places that together are less likely than δ are not protected at all.",
  hull: "The sensitivity hull K, the convex hull of the differences that edges must hide: noise is spread in its shape.",
  area: "The size of the hull in the units of the answers; zero if the hull is flat.",
  rank: "How many directions the hull spans; if it is fewer than the answers have, some states are told apart with certainty.",
  "mean squared error":
    "The expected squared distance between the released answer and the truth, exactly, at the current ε.",
  possible: "The states that somebody who knows the model and every earlier release cannot rule out.",
  exposed: "A possible state that no other possible state hides: a release could point to it alone.",
  "degree of protection":
    "How many possible states lie inside a state's hull and so hide it, itself included; 1 means exposed.",
  repair:
    "Adding edges until nobody is exposed, because a policy that shrank to the possible states may protect too little.",
  noise:
    "K-norm noise is the paper's. Staircase noise answers nearer at the same ε, but states nearer to each other than linked ones may lose as much as those. Laplace noise is K-norm noise from the l1 ball.",
  nearest: "Links an exposed state to the possible state with the nearest answer (the paper's Algorithm 1).",
  min_area: "Links an exposed state where the hull's area grows least (the paper's Algorithm 3).",
  min_error:
    "Links an exposed state where the mean squared error stays smallest, which the area only stands for.",
  estimate: "Where the person is believed to be, which anyone can compute from the answers and the model.",
  ledger: "The sum of every ε spent on one person; at its limit, releases are refused.",
  "worst pair": "How far the odds of any two possible states can move in one release, linked or not.",
};

export function setUpWords() {
  const note = document.getElementById("word-popover");
  document.addEventListener("click", (event) => {
    const term = event.target.closest?.("[data-word]");
    if (!term) return;
    event.preventDefault();
    fill(note, h("strong", {}, term.dataset.word), " ", WORDS[term.dataset.word] ?? "");
    const { left, bottom } = term.getBoundingClientRect();
    note.showPopover();
    note.style.left = `${Math.max(8, Math.min(left, innerWidth - note.offsetWidth - 8))}px`;
    note.style.top = `${Math.min(bottom + 6, innerHeight - note.offsetHeight - 8)}px`;
  });
  const dialog = document.getElementById("words");
  fill(
    dialog,
    h(
      "div",
      { className: "dialog-head" },
      h("h2", { id: "words-title" }, "The words on this page"),
      h("button", { type: "button", onclick: () => dialog.close() }, "Close"),
    ),
    h(
      "dl",
      {},
      Object.entries(WORDS).flatMap(([name, sentence]) => [h("dt", {}, name), h("dd", {}, sentence)]),
    ),
  );
  document.getElementById("words-button").addEventListener("click", () => dialog.showModal());
  dialog.addEventListener("click", (event) => {
    if (event.target === dialog) dialog.close();
  });
}
