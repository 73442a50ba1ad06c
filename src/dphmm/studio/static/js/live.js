// What is being released now: who spends how much, who nears a limit, answers as they come.

import { h, fill, short, count, widthOf } from "./elements.js";
import { roomFor } from "./plots.js";
import { ask } from "./server.js";

const d3 = globalThis.d3;
const SECONDS = 2;
const SOURCES = {
  ledger: "the ledger file",
  store: "the store",
  service: "the service, with a key that reads its own client's people",
};
const NEAR = 0.8;

export class LivePanel {
  // redraw(): the map again; view(): what is looked at
  constructor(holder, view, redraw) {
    Object.assign(this, { holder, view, redraw, now: null, seen: null, timer: 0 });
    this.svg = document.createElementNS("http://www.w3.org/2000/svg", "svg");
    this.svg.setAttribute("id", "live-plot");
    this.svg.setAttribute("role", "img");
    this.tell = h("p", { className: "tell", id: "live-tell" });
    this.away = h("p", { className: "warning", id: "live-away", role: "status", hidden: true });
    this.source = h("p", { className: "note", id: "live-source" });
    this.people = h("div", { className: "scroll", tabIndex: 0, role: "group", "aria-label": "People" });
    document.addEventListener("visibilitychange", () => this.show(this.view()));
    fill(
      holder,
      h("h2", {}, "What is being released"),
      this.away,
      this.tell,
      h("h3", {}, "Spent on everybody"),
      this.svg,
      h("h3", {}, "Who is nearest to a limit"),
      this.people,
      this.source,
    );
  }

  show(view) {
    this.mark();
    // The plot is drawn as wide as it is, and the window may be another now.
    if (view.tab === "live" && this.now) this.drawSpending(this.now.spending);
    if (view.tab === "live" && !this.timer) this.look();
  }

  // What was seen before nobody answered any more is not shown as what is there now.
  mark() {
    const old = !this.away.hidden;
    this.holder.classList.toggle("stale", old);
    document.documentElement.classList.toggle("live-old", old && this.view().tab === "live");
  }

  // `why`: what is said instead of an answer; null when there was one.
  hear(why) {
    const since = this.seen ? `Not reached since ${this.seen}: what is below is as it was then.` : "Not reached yet.";
    const words = why && `${since} ${why}. Looking again every ${this.seconds} seconds.`;
    this.away.hidden = !why;
    // Said once, and not at every look.
    if (why && this.away.textContent !== words) this.away.textContent = words;
    if (!why) this.seen = new Date().toLocaleTimeString("en-GB");
    this.mark();
  }

  get seconds() {
    return this.now?.seconds ?? SECONDS;
  }

  async look() {
    this.timer = 0;
    if (this.view().tab !== "live" || document.hidden) return;
    this.timer = -1;
    try {
      this.now = await ask("/api/live", {});
      this.hear(null);
      this.draw();
      this.redraw();
    } catch (error) {
      this.hear(error.message);
    }
    this.timer = setTimeout(() => this.look(), 1000 * (this.now?.unread ? 0.5 : 1) * this.seconds);
  }

  draw() {
    const { answers, n_people: people, near, limit, limited, file, now, unread, kind, seconds } = this.now;
    const { other_laws: laws, other_questions: questions, returned } = this.now;
    const all = limit ? `the limit of ${limit}${limited ? ", or their own" : ""}` : "their own limit";
    const nearly = near ? `${count(near, "person", "people")} spent 80% or more of ${all}.` : `Nobody is near ${all}.`;
    fill(
      this.tell,
      answers ? `${count(answers, "answer")} about ${count(people, "person", "people")} in ${file}, the last at ${now ?? "a time of another question"}. ` : `Nothing was said yet in ${file}. `,
      limit || limited ? h("strong", {}, nearly) : "There is no limit.",
      unread ? h("em", {}, ` Still reading: ${count(unread, "person", "people")} to go, who are not counted yet.`) : "",
      laws ? ` ${count(laws, "answer")} followed another law than this file's and are not on the map.` : "",
      returned ? ` ${count(returned, "person was", "people were")} erased before; what was spent then counts in all, not in windows.` : "",
      questions ? ` ${count(questions, "answer")} to other questions count in what was spent in all, not in windows.` : "",
    );
    this.source.textContent = `Read from ${SOURCES[kind]} every ${seconds} seconds: answers as they left, and their prices. Nothing is written, and nobody's true place is in it.`;
    this.drawSpending(this.now.spending);
    const row = (one) =>
      h(
        "tr",
        {},
        h("th", { scope: "row" }, one.person),
        h("td", {}, short(one.answers)),
        h("td", {}, short(one.spent)),
        h("td", { className: one.share >= NEAR ? "alarm-text" : "" }, one.limit ? h("span", { title: one.limit }, `${Math.round(100 * one.share)}%`) : "–"),
      );
    const head = ["person", "answers", "spent", "of limit"].map((text) => h("th", { scope: "col" }, text));
    const rows = this.now.people.map(row);
    fill(this.people, rows.length ? h("table", { id: "live-people" }, h("thead", {}, h("tr", {}, head)), h("tbody", {}, rows)) : h("p", { className: "note" }, "Nobody yet."));
  }

  drawSpending(bars) {
    const [width, height] = [widthOf(this.svg), 96];
    const root = d3.select(this.svg).attr("viewBox", `0 0 ${width} ${height}`);
    root.selectAll("*").remove();
    const most = d3.max(bars, ({ spent }) => spent) ?? 0;
    this.svg.setAttribute("aria-label", `Spending over time: at most ${short(most)} in one of ${bars.length} stretches.`);
    if (!bars.length) return;
    const y = d3.scaleLinear([0, most || 1], [height - 20, 8]);
    const left = roomFor(y.ticks(3).map(short), 40);
    const x = d3.scaleBand(d3.range(bars.length), [left, width - 4]).padding(0.12);
    const text = (at, down, anchor, words) => root.append("text").attr("class", "axis-text").attr("x", at).attr("y", down).attr("text-anchor", anchor).text(words);
    for (const tick of y.ticks(3)) {
      root.append("path").attr("class", "grid-line").attr("d", `M${left},${y(tick)}H${width - 4}`);
      text(left - 4, y(tick) + 4, "end", short(tick));
    }
    root
      .selectAll("rect")
      .data(bars)
      .join("rect")
      .attr("class", "spent-bar")
      .attr("x", (_, i) => x(i))
      .attr("width", x.bandwidth())
      .attr("y", ({ spent }) => y(spent))
      .attr("height", ({ spent }) => y(0) - y(spent));
    text(left, height - 5, "start", bars[0].time);
    if (bars.length > 1) text(width - 4, height - 5, "end", bars.at(-1).time);
  }

  // The answers on the map, the latest ringed.
  tracks() {
    const points = (this.now?.drawn ?? []).map(({ place }) => place);
    return [{ kind: "answers", points, dots: true }, ...(points.length ? [{ kind: "answer", points: [points.at(-1)], lone: true }] : [])];
  }
}
