// The trade-off: how far off answers are along one setting, with the present point; a point is
// chosen by a click or by Enter. Each point is computed by the server as a draft of its own.

import { h, fill, length, lasts, short, debounce, toNumber, widthOf } from "./elements.js";
import { choices } from "./tools.js";
import { valueOf, withValues, withoutSchedule } from "./state.js";

const d3 = globalThis.d3;
const AXES = [
  ["radius", "Radius", "How far apart places must look alike"],
  ["epsilon", "Price", "What an answer costs"],
  ["interval", "Interval", "How often it speaks, for the same budget"],
  ["budget", "Budget", "What may be spent"],
];
// What each curve does not depend on: its own settings.
const OWN = {
  radius: ["policy.distance"],
  epsilon: ["epsilon"],
  interval: ["epsilon", "when", "when.every", "when.phase"],
  budget: ["epsilon", "limit"],
};
const MANY = 2500;
const HEIGHT = 150;
const GUESS = "a guess without any answer";
const MARGIN = { left: 46, right: 12, top: 10, bottom: 24 };

export function curveKey(world, view, axis) {
  const changes = Object.entries(view.draft.changes).filter(([key]) => !OWN[axis].includes(key));
  return JSON.stringify([world.world, view.step, axis, changes.toSorted(([a], [b]) => (a < b ? -1 : 1)), view.draft.edges]);
}

export function axisOf(view, world) {
  if (view.axis) return view.axis;
  const distance = valueOf(view, world, "policy.distance");
  return distance === undefined || distance === null ? "epsilon" : "radius";
}

export class Curve {
  // answers: to compute with; choose(draft, label): take a point.
  constructor(store, answers, choose) {
    Object.assign(this, { store, answers, choose, points: [], key: "", kept: new Map() });
    this.svg = document.createElementNS("http://www.w3.org/2000/svg", "svg");
    this.svg.setAttribute("id", "curve-plot");
    this.svg.setAttribute("role", "group");
    this.svg.addEventListener("keydown", (event) => this.typed(event));
    this.axes = h("span", { id: "curve-axes" });
    this.tell = h("p", { className: "note", id: "curve-tell" });
    this.card = h(
      "details",
      { className: "card", id: "curve", open: true, ontoggle: () => this.world && this.show(this.store.view, this.world, this.answer) },
      h("summary", {}, "Trade-off"),
      h("fieldset", { className: "segmented" }, h("legend", { className: "hidden" }, "Error against"), this.axes),
      this.svg,
      this.tell,
    );
    this.load = debounce((key) => this.fetch(key), () => (store.kind?.startsWith("slide") ? 700 : 250));
  }

  show(view, world, answer) {
    if (this.world?.world !== world.world) this.card.open = world.n_states <= MANY;
    Object.assign(this, { view, world, answer });
    this.axis = axisOf(view, world);
    choices(this.axes, "axis", AXES, this.axis, (axis) => this.store.change({ axis }));
    if (!this.card.open) return;
    const key = curveKey(world, view, this.axis);
    if (key !== this.key) {
      const kept = this.kept.get(key);
      Object.assign(this, { key, points: kept?.points ?? [], values: kept?.values ?? null, problem: "" });
      if (!kept) this.load(key);
    }
    if (this.kept.has(key)) this.complete(key);
    this.draw();
  }

  // The present value belongs on its curve, also one that the curve was not made with.
  complete(key) {
    const { present } = this;
    const asked = `${key} ${present}`;
    if (!present || this.asked === asked || this.points.some((point) => point.number === present)) return;
    this.asked = asked;
    this.add(key, String(present));
  }

  async add(key, value) {
    try {
      const { world, axis, view } = this;
      const { points } = await this.answers.compute("/api/tradeoff", { world: world.world, ...view.draft, step: view.step, axis, values: [value] });
      if (key !== this.key) return;
      this.points = [...this.points, ...points].toSorted((a, b) => a.number - b.number);
      this.kept.set(key, { points: this.points, values: this.points });
      this.draw();
    } catch {
      // A value that the server refuses has no point, and the page says elsewhere why.
    }
  }

  async fetch(key) {
    if (key !== this.key) return;
    const { world, axis, view } = this;
    const asked = { world: world.world, ...view.draft, step: view.step, axis };
    const points = [];
    try {
      const { values, at_once: atOnce } = await this.answers.compute("/api/tradeoff", asked);
      while (points.length < values.length && key === this.key) {
        const some = values.slice(points.length, points.length + atOnce);
        // One after the other, so that a slider that moves meanwhile is answered first.
        // oxlint-disable-next-line no-await-in-loop
        points.push(...(await this.answers.compute("/api/tradeoff", { ...asked, values: some })).points);
        if (key !== this.key) return;
        Object.assign(this, { points: [...points], values });
        this.draw();
      }
      if (key !== this.key) return;
      this.kept.set(key, { points, values });
      this.complete(key);
    } catch (error) {
      if (key !== this.key) return;
      this.problem = error.message;
      this.draw();
      if (error.status === undefined) this.key = "";  // the next change asks again
    }
  }

  // The value that is set now, as a number and in the words of the axis.
  get present() {
    const { axis, view, world } = this;
    if (axis === "radius") return number(valueOf(view, world, "policy.distance"));
    if (axis === "epsilon") return number(valueOf(view, world, "epsilon"));
    if (axis === "budget") return number(/^(\S+) per /.exec(valueOf(view, world, "limit") ?? "")?.[1]);
    return this.answer?.effects.every ?? null;
  }

  words(value) {
    const { axis, world } = this;
    if (axis === "radius") return length(value, world.unit);
    if (axis === "epsilon") return `ε ${short(value)}`;
    return axis === "budget" ? short(value) : lasts(value, world.time_step);
  }

  describe(point) {
    const off = (value) => length(value, this.world.unit);
    const named = `${AXES.find(([axis]) => axis === this.axis)[1]} ${this.words(point.number)}`;
    if (point.error === null) return `${named}: ${short(point.exposed)} places exposed, too many to repair here`;
    if (point.now !== undefined) return `${named}: estimates off by ${off(point.error)} in hindsight, ${off(point.now)} at the time, each answer by ${off(point.answer)} (${point.people} simulated people)`;
    const hides = point.exposed ? `${short(point.exposed)} exposed` : `hides among at least ${short(point.least)}`;
    return `${named}: an answer is off by ${off(point.error)}, ${hides}${point.useless ? "; no better than silence" : ""}`;
  }

  say(point) {
    const loading = this.values && this.points.length < this.values.length ? ` (${this.points.length} of ${this.values.length} points)` : "";
    if (this.problem) fill(this.tell, this.problem);
    else if (point) fill(this.tell, `${this.describe(point)}.`);
    else fill(this.tell, this.points.length ? "Choose a point to set it." : "Working it out…", loading);
  }

  draw() {
    const root = d3.select(this.svg);
    const focused = this.svg.contains(document.activeElement) ? document.activeElement.dataset.value : null;
    root.selectAll("*").remove();
    const known = this.points.filter(({ error }) => error !== null);
    this.svg.setAttribute("aria-label", `Trade-off: error against ${this.axis}, ${this.points.length} points`);
    this.svg.classList.toggle("hidden-plot", !known.length);
    this.wide = widthOf(this.svg);
    root.attr("viewBox", `0 0 ${this.wide} ${HEIGHT}`);
    const present = this.present;
    const here = this.points.find((point) => point.number === present);
    this.say(here);
    if (!known.length) return;
    const { x, y } = this.scales(root, known);
    const silent = known[0].silent ?? null;
    if (silent !== null && y(silent) > MARGIN.top) {
      root.append("path").attr("class", "limit").attr("d", `M${MARGIN.left},${y(silent)}H${this.wide - MARGIN.right}`);
      const [at, down] = this.room(known, x, y, silent);
      root.append("text").attr("class", "limit-text").attr("x", at).attr("y", down).text(GUESS);
    }
    const line = (read) => d3.line().x(({ number: value }) => x(value)).y((point) => y(read(point)))(known);
    // A line that leaves the picture is cut off at its edge, never bent along it.
    const [width, height] = [this.wide - MARGIN.left, HEIGHT - MARGIN.top - MARGIN.bottom];
    const inside = root.append("svg").attr("x", MARGIN.left).attr("y", MARGIN.top).attr("width", width).attr("height", height);
    inside.attr("viewBox", `${MARGIN.left} ${MARGIN.top} ${width} ${height}`);
    inside.append("path").attr("class", "line a").attr("d", line(({ error }) => error));
    if (known[0].now !== undefined) inside.append("path").attr("class", "line a faint").attr("d", line(({ now }) => now));
    this.drawPoints(root, x, y, present);
    if (focused !== null) this.svg.querySelector(`[data-value="${focused}"]`)?.focus();
  }

  // Where the words about a guess cover the least of the curve: above or below its line, at either end.
  room(known, x, y, silent) {
    const wide = 6.4 * GUESS.length;
    const places = [this.wide - MARGIN.right - wide - 2, MARGIN.left + 4].flatMap((from) =>
      [-4, 13].map((below) => [from, y(silent) + below]),
    );
    // The points of the curve, and some between each two of them.
    const pixels = ({ number: value, error }) => [x(value), y(error)];
    const parts = known.flatMap((one, i) => {
      const [start, end] = [pixels(one), pixels(known[i + 1] ?? one)];
      return d3.range(0, 1, 0.125).map((part) => start.map((value, axis) => value + part * (end[axis] - value)));
    });
    const covered = ([from, down]) => {
      const hidden = parts.filter(([across, height]) => across > from - 6 && across < from + wide + 6 && height > down - 17 && height < down + 9);
      return hidden.length + (down > HEIGHT - MARGIN.bottom || down < MARGIN.top + 8 ? parts.length : 0);
    };
    return places.toSorted((a, b) => covered(a) - covered(b))[0];
  }

  scales(root, known) {
    const numbers = this.points.map(({ number: value }) => value);
    const make = this.axis === "radius" ? d3.scaleLinear : d3.scaleLog;
    const x = make(d3.extent(numbers), [MARGIN.left + 8, this.wide - MARGIN.right - 6]);
    const errors = known.flatMap(({ error, now }) => [error, now ?? 0]).toSorted((a, b) => a - b);
    // Errors far beyond a guess without any answer would flatten all the others; where the present
    // one, or every one, lies beyond, they are what there is to see.
    const { silent } = known[0];
    const here = known.find((point) => point.number === this.present)?.error ?? 0;
    const most = silent ? Math.min(errors.at(-1), Math.max(1.35 * silent, 1.15 * here, 1.3 * d3.min(known, ({ error }) => error))) : errors.at(-1);
    const y = d3.scaleLinear([0, Math.max(most * 1.06, 1e-12)], [HEIGHT - MARGIN.bottom, MARGIN.top]);
    const grid = root.append("g").attr("class", "grid");
    for (const tick of y.ticks(4)) {
      grid.append("path").attr("d", `M${MARGIN.left},${y(tick)}H${this.wide - MARGIN.right}`);
      root.append("text").attr("class", "axis-text").attr("x", MARGIN.left - 5).attr("y", y(tick) + 4).attr("text-anchor", "end").text(tick ? length(tick, this.world.unit) : "0");
    }
    let last = -Infinity;
    for (const value of numbers) {
      const text = this.words(value);
      const half = 3.6 * text.length;
      if (x(value) - half < last + 6 || x(value) + half > this.wide) continue;
      last = x(value) + half;
      root.append("text").attr("class", "axis-text").attr("x", x(value)).attr("y", HEIGHT - 6).attr("text-anchor", "middle").text(text);
    }
    return { x, y };
  }

  // Points are buttons of which one is a stop of the Tab key; the arrow keys walk between them.
  drawPoints(root, x, y, present) {
    const stop = this.points.find((point) => point.number === present) ?? this.points[0];
    const groups = root
      .selectAll("g.point")
      .data(this.points)
      .join("g")
      .attr("class", (point) => `point${point.number === present ? " now" : ""}${point.error === null || point.exposed ? " bad" : ""}`)
      .attr("role", "button")
      .attr("tabindex", (point) => (point === stop ? 0 : -1))
      .attr("data-value", (point) => point.value)
      .attr("aria-label", (point) => this.describe(point))
      .attr("aria-current", (point) => (point.number === present ? "true" : null))
      .on("click", (_, point) => this.take(point))
      .on("pointerenter focus", (_, point) => this.say(point))
      .on("pointerleave blur", () => this.say(this.points.find((point) => point.number === this.present)));
    groups.filter((point) => point.number === present).raise();
    const isOver = (point) => point.error === null || y(point.error) < MARGIN.top - 1;
    const top = (point) => (isOver(point) ? MARGIN.top : y(point.error));
    groups.classed("over", isOver);
    groups.append("circle").attr("class", "hit").attr("r", 10).attr("cx", (p) => x(p.number)).attr("cy", top);
    groups.filter((p) => !isOver(p)).append("circle").attr("class", "dot").attr("r", (p) => (p.number === present ? 6 : 3.5)).attr("cx", (p) => x(p.number)).attr("cy", top);
    // What lies above the picture is an arrow at its edge, not a point of it.
    const size = (p) => (p.number === present ? 6 : 4);
    groups.filter(isOver).append("path").attr("class", "dot").attr("d", (p) => `M${x(p.number)},${MARGIN.top - size(p)}l${size(p)},${1.7 * size(p)}h${-2 * size(p)}z`);
  }

  typed(event) {
    // The present point is drawn last, above its neighbours, so the order is that of the values.
    const all = [...this.svg.querySelectorAll(".point")].toSorted((a, b) => d3.select(a).datum().number - d3.select(b).datum().number);
    const place = all.indexOf(document.activeElement);
    if (place < 0) return;
    const by = { ArrowRight: 1, ArrowUp: 1, ArrowLeft: -1, ArrowDown: -1 }[event.key];
    if (by) all[Math.max(0, Math.min(all.length - 1, place + by))].focus();
    else if (event.key === "Enter" || event.key === " ") this.take(this.points[place]);
    else return;
    event.preventDefault();
  }

  take(point) {
    const { when, ...values } = point.changes;
    const { draft } = this.store.view;
    const bare = when === null ? withoutSchedule(draft, this.world) : draft;
    const name = AXES.find(([axis]) => axis === this.axis)[1];
    this.choose(withValues(bare, this.world, values), `${name} ${this.words(point.number)}`);
  }
}

const number = (text) => {
  const value = toNumber(text);
  return Number.isFinite(value) ? value : null;
};
