// What a pointer or the keyboard does on the map: look, link two places, lasso several.

import { h, fill } from "./elements.js";

const d3 = globalThis.d3;

export const TOOLS = [
  ["look", "Look", "Point at a place to see who hides it."],
  ["link", "Link", "Choose two places to link them, or to take their link away."],
  ["lasso", "Lasso", "Draw around places to make them all look alike."],
];

// Inside a polygon in pixels, by d3's own test.
export function within(map, polygon) {
  return d3.range(map.world.n_states).filter((state) => d3.polygonContains(polygon, map.at(state)));
}

export class Tools {
  // act: hover(state), link(a, b), clique(states), pick(states), look(state)
  constructor(map, act) {
    this.map = map;
    this.act = act;
    this.tool = "look";
    this.chosen = [];
    this.focus = null;
    map.dragsMap = () => this.tool !== "lasso";
    const node = map.svg.node();
    node.addEventListener("pointermove", (event) => this.moved(event));
    node.addEventListener("pointerleave", () => this.act.hover(null));
    node.addEventListener("click", (event) => this.clicked(event));
    node.addEventListener("pointerdown", (event) => this.pressed(event));
    map.holder.addEventListener("keydown", (event) => this.typed(event));
    map.holder.addEventListener("focus", () => {
      if (map.holder.matches(":focus-visible")) this.focusOn(this.focus ?? 0);
    });
    map.holder.addEventListener("blur", () => this.focusOn(null));
  }

  choose(tool) {
    this.tool = tool;
    this.pick([]);
    this.map.svg.attr("data-tool", tool);
  }

  pick(states) {
    this.chosen = states;
    this.act.pick(states);
  }

  focusOn(state) {
    this.focus = state;
    this.act.focus(state);
  }

  point(event) {
    return d3.pointer(event, this.map.svg.node());
  }

  moved(event) {
    if (!this.map.scene) return;
    const state = this.map.stateAt(...this.point(event));
    if (this.lasso) {
      this.lasso.push(this.point(event));
      this.map.layers.lasso
        .selectAll("path")
        .data([this.lasso])
        .join("path")
        .attr("class", "lasso")
        .attr("d", d3.line().curve(d3.curveLinearClosed));
      return;
    }
    this.act.hover(state);
  }

  pressed(event) {
    if (event.button !== 0 || !this.map.scene) return;
    if (this.tool !== "lasso") return;
    this.lasso = [this.point(event)];
    const node = this.map.svg.node();
    node.setPointerCapture(event.pointerId);
    node.addEventListener("pointerup", () => this.released(), { once: true });
  }

  released() {
    if (this.lasso) {
      const states = this.lasso.length > 2 ? within(this.map, this.lasso) : [];
      this.lasso = null;
      this.map.layers.lasso.selectAll("*").remove();
      this.act.clique(states);
    }
  }

  clicked(event) {
    if (event.defaultPrevented || !this.map.scene) return;
    const state = this.map.stateAt(...this.point(event));
    if (state !== null && this.tool !== "lasso") this.use(state);
  }

  use(state) {
    if (this.tool === "link") {
      if (this.chosen.length === 1 && this.chosen[0] !== state) {
        const [first] = this.chosen;
        this.pick([]);
        this.act.link(first, state);
      } else {
        this.pick(this.chosen[0] === state ? [] : [state]);
      }
    } else if (this.tool === "lasso") {
      const has = this.chosen.includes(state);
      this.pick(has ? this.chosen.filter((other) => other !== state) : [...this.chosen, state]);
    } else {
      this.pick(this.chosen[0] === state ? [] : [state]);
      this.act.look?.(state);
    }
  }

  // Arrow keys walk from state to state; with the lasso, Space collects and Enter closes.
  typed(event) {
    const steps = { ArrowLeft: [-1, 0], ArrowRight: [1, 0], ArrowUp: [0, 1], ArrowDown: [0, -1] };
    if (steps[event.key]) {
      const next = this.map.beside(this.focus ?? 0, ...steps[event.key]);
      if (next !== null) this.focusOn(next);
    } else if (event.key === "Enter" || event.key === " ") {
      if (this.tool === "lasso" && event.key === "Enter" && this.chosen.length > 1) {
        const states = this.chosen;
        this.pick([]);
        this.act.clique(states);
      } else if (this.focus === null) {
        this.focusOn(0);
      } else {
        this.use(this.focus);
      }
    } else if (event.key === "+" || event.key === "=") this.map.zoomBy(1.4);
    else if (event.key === "-") this.map.zoomBy(1 / 1.4);
    else if (event.key === "0") this.map.fit();
    else if (event.key === "Escape") this.pick([]);
    else return;
    event.preventDefault();
  }
}

// Native radio buttons, so that the keyboard works as everywhere.
export function choices(holder, name, options, current, choose) {
  if (!holder.children.length)
    fill(
      holder,
      options.map(([value, label, title]) =>
        h(
          "label",
          { title },
          h("input", { type: "radio", name, value, onchange: () => choose(value) }),
          h("span", {}, label),
        ),
      ),
    );
  for (const input of holder.querySelectorAll("input")) input.checked = input.value === current;
}
