// The tour: a few stations through the page, each with one thing to look at or to try.

import { h, fill } from "./elements.js";

export const STATIONS = [
  ["policy", "#map", "This is a city of small cells. A made-up person moves through it, and you want to tell roughly where they are, again and again, without telling where exactly."],
  ["policy", '[data-layer="distance"]', "The rule: cells nearer to each other than this must look alike in every answer. Move the slider and watch the sentence on the right: more alike means further off."],
  ["policy", "#headline-card", "What it comes to, in one sentence: how far off an answer is, and among how many cells everybody hides. On a small screen it stands above the map."],
  ["policy", "#curve", "The trade-off. Each point is a setting that you could have; click one to take it. Price and Radius pull in different directions."],
  ["budget", "#panel-budget", "Answers add up. Give a person a budget for a day, choose how often to speak, and press Spend it evenly, so that it lasts."],
  ["noise", "#set-repair", "When little is possible, a place may stand alone: it is exposed. Repair links it to others until nobody is. The card Who is exposed? shows what each repair costs."],
  ["walk", "#run-walk", "Run the walk and press Play: the true way, the answers, and what somebody can make of them at the time and in hindsight."],
  ["compare", "#panel-compare", "Keep this version under a name, change something, and see both side by side."],
  ["save", "#panel-save", "Here is what saving would change in the file, line by line. That is the whole tour: open your own scenario from the start page."],
];

export class Tour {
  constructor(holder, store, end) {
    Object.assign(this, { holder, store, end, place: null });
  }

  start() {
    this.go(0);
  }

  go(place) {
    this.mark(null);
    if (place === null || place < 0 || place >= STATIONS.length) {
      this.place = null;
      this.holder.hidden = true;
      fill(this.holder);
      return;
    }
    this.place = place;
    const [tab, target, text] = STATIONS[place];
    this.store.change({ tab });
    this.mark(target);
    const last = place === STATIONS.length - 1;
    this.holder.hidden = false;
    fill(
      this.holder,
      h("p", { className: "tour-count" }, `${place + 1} of ${STATIONS.length}`),
      h("p", { id: "tour-text", tabIndex: -1 }, text),
      h(
        "div",
        { className: "row" },
        h("button", { type: "button", id: "tour-back", disabled: place === 0, onclick: () => this.go(place - 1) }, "Back"),
        h("button", { type: "button", id: "tour-next", className: "primary", onclick: () => (last ? this.finish() : this.go(place + 1)) }, last ? "To the start page" : "Next"),
        h("button", { type: "button", id: "tour-end", className: "text", onclick: () => this.go(null) }, "End the tour"),
      ),
    );
    document.getElementById("tour-text").focus();
  }

  finish() {
    this.go(null);
    this.end();
  }

  mark(target) {
    document.querySelector(".tour-target")?.classList.remove("tour-target");
    const found = target && document.querySelector(target);
    if (!found) return;
    // On a small screen the result is a tab of its own.
    if (!found.checkVisibility()) this.store.change({ tab: "result" });
    found.classList.add("tour-target");
    found.scrollIntoView({ block: "nearest" });
  }
}
