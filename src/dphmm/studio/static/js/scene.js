// From what is known to what the map draws, and the words beside it.

import { h, fill, short } from "./elements.js";
import { MOST_CATEGORIES, categoryColour, colouring, ramp, symbolOf } from "./colours.js";

const COLOURS = [
  ["category", "category"],
  ["degree", "how well hidden"],
  ["prior", "likely before an answer"],
  ["posterior", "likely after it (walk)"],
];

// What the tracks of people are called, on the page and in pictures of it.
const TRACKS = [
  ["truth", "true walk (simulated)"],
  ["other", "other people, and their answers"],
  ["answer", "answer"],
  ["estimate", "estimate"],
  ["lagged", "six steps later"],
  ["smoothed", "in hindsight"],
];

// The kinds of tracks that are on a map, and their names. `away`: whether an arrow points off it.
export function namedTracks({ tracks }, away) {
  const kinds = new Set(tracks.map(({ kind }) => (kind === "answers" ? "answer" : kind)));
  const told = kinds.has("truth") ? TRACKS : [["answer", "answer, as it left"]];
  return [...(away ? [["away", "answer off the map"]] : []), ...told.filter(([kind]) => kinds.has(kind))];
}

// The map shows either side: the policy alone, or what is really released.
export function sideOf(view, answer) {
  return view.stage === "before" ? answer.effects.before : (answer.released ?? answer.effects.before);
}

// Whether answers are looked at, of a simulated walk or of a ledger, instead of the policy.
export const isFilm = (view, walk, live) => Boolean((view.tab === "walk" && walk.walked) || (view.tab === "live" && live?.now));

// What is believed after an answer belongs to one walk: elsewhere it would be taken for the policy's.
export const shownColour = (view) => (view.colour === "posterior" && view.tab !== "walk" ? "category" : view.colour);

export function sceneOf({ view, world, answer, labels, tools, walk, live, added, hovered, preview, most }) {
  const walking = isFilm(view, walk, live);
  const posterior = walk.walked ? walk.posterior(view) : null;
  const { effects } = answer;
  const side = sideOf(view, answer);
  const { fills, legend } = colouring(shownColour(view), world, labels, { ...effects, degree: side.degree, most }, posterior);
  const single = hovered ?? tools.focus ?? (view.tool === "look" ? tools.chosen[0] : null) ?? null;
  const repaired = side === answer.released ? answer.released.added : [];
  return {
    legend,
    fills,
    beside: view.tab === "compare",
    possible: walking && view.colour === "posterior" ? null : effects.possible ? new Set(effects.possible) : null,
    edges: walking ? null : effects.edges.drawn,
    own: walking ? null : effects.own,
    exposed: walking ? [] : side.exposed,
    shapes: { names: labels.names, of: labels.categories },
    marked: shownColour(view) === "category" && labels.names.length > 1,
    labels: true,
    moves: view.moves && !walking ? world.moves : null,
    hull: preview?.outline ?? side.hull.outline,
    hullAt: walking ? null : (preview?.state ?? single),
    added: walking ? [] : (added ?? repaired),
    chosen: tools.chosen,
    focus: tools.focus,
    tracks: walking ? (view.tab === "live" ? live : walk).tracks(view) : [],
  };
}

export function colourChoice(select, view, walked) {
  fill(select, COLOURS.map(([value, label]) => h("option", { value, disabled: value === "posterior" && !(walked && view.tab === "walk") }, label)));
  select.value = shownColour(view);
}

// `other`: the scene of B and its links, where it stands beside A.
export function showLegend(holder, scene, { view, labels, answer, walk, live }, other = null) {
  const walking = isFilm(view, walk, live);
  const key = (className, text) => h("div", { className: "legend-row" }, h("span", { className: `key ${className}` }), text);
  const sides = [{ scene, edges: answer.effects.edges }, ...(other ? [other] : [])];
  const some = (has) => sides.some(has);
  // Of two versions each has its own number.
  const each = (read) => sides.map((side, i) => (other ? `${"AB"[i]} ` : "") + read(side)).join(", ");
  const thinned = ({ edges }) => edges.n_drawn < edges.count;
  const marks = [
    some((side) => side.scene.exposed.length) ? key("key-exposed", `exposed (${each((side) => short(side.scene.exposed.length))})`) : null,
    some((side) => side.scene.added.length) ? key("key-added", scene.beside ? "links of one version only" : "added by repair") : null,
    !walking && some(thinned) ? key("key-edge", `${each(({ edges }) => (thinned({ edges }) ? `${short(edges.n_drawn)} of ${edges.exact ? "" : "at most "}${short(edges.count)}` : "all"))} links drawn`) : null,
    ...namedTracks(scene, document.querySelector("#map .away")).map(([kind, words]) => key(`key-${kind}`, words)),
  ];
  const { legend } = scene;
  if (legend.kind === "category") {
    const few = labels.names.length > MOST_CATEGORIES ? labels.names.slice(0, MOST_CATEGORIES - 1) : labels.names;
    const rest = labels.names.length - few.length;
    return fill(
      holder,
      [...few, ...(rest ? [`other (${rest})`] : [])].map((name, number) => {
        const svg = document.createElementNS("http://www.w3.org/2000/svg", "svg");
        svg.setAttribute("viewBox", "-8 -8 16 16");
        svg.setAttribute("class", "legend-symbol");
        const path = document.createElementNS("http://www.w3.org/2000/svg", "path");
        path.setAttribute("d", symbolOf(name, number, 130)());
        path.style.fill = categoryColour(number);
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
  return fill(
    holder,
    h("div", { className: "legend-title" }, COLOURS.find(([value]) => value === legend.what)[1]),
    canvas,
    h("div", { className: "legend-ends" }, [0, legend.middle, legend.most].map((value) => h("span", {}, String(Number(value.toPrecision(2)))))),
    marks,
  );
}

export function tellState(state, { view, world, answer, labels }) {
  const degree = sideOf(view, answer).degree[state];
  const kind = labels.names[labels.categories[state]];
  const name = world.labels[state];
  if (!degree) return `${name}, ${kind}: not possible now.`;
  const hidden = degree === 1 ? "exposed, hidden by nobody else" : `hidden by ${short(degree - 1)} other${degree === 2 ? "" : "s"}`;
  return `${name}, ${kind}: ${hidden}; ${short(100 * answer.effects.prior[state])}% likely before an answer.`;
}
