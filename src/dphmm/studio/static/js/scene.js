// From what is known to what the map draws, and the words beside it.

import { h, fill, short } from "./elements.js";
import { categoryColour, colouring, ramp, symbolOf } from "./colours.js";

const COLOURS = [
  ["category", "category"],
  ["prior", "prior"],
  ["posterior", "posterior (walk)"],
  ["degree", "degree of protection"],
];

// The categories as they are, painted or not.
export function labelsOf(view, world) {
  const painted = view.policy.categories;
  if (!painted || painted.length !== world.n_states)
    return { names: world.category_names, categories: world.categories };
  const names = [...new Set([...world.category_names, ...painted])];
  const place = new Map(names.map((name, i) => [name, i]));
  return { names, categories: painted.map((name) => place.get(name)) };
}

export function sceneOf({ view, world, effects, labels, tools, walk, added, hovered, preview }) {
  const walking = view.tab === "walk" && walk.walked;
  const posterior = walk.walked ? walk.posterior(view) : null;
  const { fills, legend } = colouring(view.colour, world, labels, effects, posterior);
  const single = hovered ?? tools.focus ?? (view.tool === "look" ? tools.chosen[0] : null) ?? null;
  return {
    legend,
    fills,
    possible:
      walking && view.colour === "posterior" ? null : effects.possible ? new Set(effects.possible) : null,
    edges: walking ? null : effects.edges.drawn,
    exposed: walking ? [] : effects.exposed,
    shapes: world.cell ? null : { names: labels.names, of: labels.categories },
    labels: true,
    moves: view.moves && world.n_states <= 60 && !walking ? world.moves : null,
    hull: preview?.outline ?? effects.hull.outline,
    hullAt: walking ? null : (preview?.state ?? single),
    added: added ?? [],
    chosen: tools.chosen,
    focus: tools.focus,
    start: view.moment.start ?? null,
    tracks: walking ? walk.tracks(view) : [],
  };
}

export function colourChoice(select, view, walked) {
  fill(
    select,
    COLOURS.map(([value, label]) =>
      h("option", { value, disabled: value === "posterior" && !walked }, label),
    ),
  );
  select.value = view.colour;
}

export function showLegend(holder, { legend }, { world, labels, walking, exposed }) {
  const key = (className, text) =>
    h("div", { className: "legend-row" }, h("span", { className: `key ${className}` }), text);
  const marks = [
    exposed ? key("key-exposed", "exposed") : null,
    ...(walking ? [key("key-truth", "true walk (simulated)")] : []),
    ...(walking && world.answers_are_places
      ? [key("key-answer", "released"), key("key-estimate", "estimate")]
      : []),
  ];
  if (legend.kind === "category") {
    return fill(
      holder,
      labels.names.slice(0, 9).map((name, number) => {
        const svg = document.createElementNS("http://www.w3.org/2000/svg", "svg");
        svg.setAttribute("viewBox", "-8 -8 16 16");
        svg.setAttribute("class", "legend-symbol");
        const path = document.createElementNS("http://www.w3.org/2000/svg", "path");
        const d = world.cell ? "M-6,-6h12v12h-12z" : symbolOf(name, number, 130)();
        path.setAttribute("d", d);
        path.style.fill = categoryColour(number, Boolean(world.cell));
        svg.append(path);
        return h("div", { className: "legend-row" }, svg, name);
      }),
      marks,
    );
  }
  const canvas = h("canvas", { width: 120, height: 8, "aria-hidden": "true" });
  const context = canvas.getContext("2d");
  const paint = ramp();
  for (let x = 0; x < 120; x += 1) {
    context.fillStyle = paint(x / 119);
    context.fillRect(x, 0, 1, 8);
  }
  const title = {
    prior: "prior probability",
    posterior: "posterior probability",
    degree: "degree of protection",
  }[legend.what];
  return fill(
    holder,
    h("div", { className: "legend-title" }, title),
    canvas,
    h(
      "div",
      { className: "legend-ends" },
      [0, legend.middle, legend.most].map((value) => h("span", {}, String(Number(value.toPrecision(2))))),
    ),
    marks,
  );
}

export function tellState(state, { world, effects, labels }) {
  const degree = effects.degree[state];
  const kind = labels.names[labels.categories[state]];
  const name = world.labels[state];
  if (!degree) return `${name}, ${kind}: not possible now.`;
  const hidden =
    degree === 1
      ? "exposed, hidden by nobody else"
      : `hidden by ${short(degree - 1)} other${degree === 2 ? "" : "s"}`;
  return `${name}, ${kind}: ${hidden}; prior ${short(effects.prior[state])}.`;
}
