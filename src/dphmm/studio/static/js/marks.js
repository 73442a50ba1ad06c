// The marks above the map: names, chosen states, the hull where the pointer is, tracks of a walk. They are SVG elements, so that few of them look sharp and can be exported.

import { length as lengthOf } from "./elements.js";

const d3 = globalThis.d3;
const MOST_LABELS = 120;
// Half of how wide a letter of a name is.
const LETTER = 4.2;

export function drawMarks(map) {
  const { scene } = map;
  drawLabels(map);
  drawMoves(map, scene.moves);
  drawHull(map, scene.hullAt);
  drawAdded(map, scene.added ?? []);
  drawSelected(map, scene);
  drawTracks(map, scene.tracks ?? []);
  drawScale(map);
}

const visible = (map) => (state) => {
  const [x, y] = map.at(state);
  return x > -20 && y > -20 && x < map.size[0] + 20 && y < map.size[1] + 20;
};

function radiusOf(map) {
  return map.hasAreas ? Math.max(map.cellSize * 0.5, 4) : map.pointSize;
}

// Names where there is room for them: one that would cover another is left out.
function drawLabels(map) {
  const { scene, world } = map;
  const roomy = map.hasAreas ? map.cellSize > 34 : map.pointSize > 6;
  const below = map.hasAreas ? 4 : radiusOf(map) + 20;
  const taken = [];
  const shown = [];
  // A name beside a point at the edge moves inwards, and stays whole.
  const middle = (state) => {
    const [x, half] = [map.at(state)[0], LETTER * world.labels[state].length];
    return map.hasAreas || x < 0 || x > map.size[0] ? x : Math.max(half, Math.min(map.size[0] - half, x));
  };
  for (const state of scene.labels && roomy ? d3.range(world.n_states).filter(visible(map)) : []) {
    const [x, y] = [middle(state), map.at(state)[1]];
    const half = LETTER * world.labels[state].length;
    // On an area a name stays inside it, or it would be taken for its neighbour's.
    if (map.hasAreas && 2 * half > map.cellSize) continue;
    const box = [x - half, y + below - 12, x + half, y + below + 3];
    const covers = ([a, b, c, d]) => a < box[2] && box[0] < c && b < box[3] && box[1] < d;
    if (shown.length >= MOST_LABELS || taken.some(covers)) continue;
    taken.push(box);
    shown.push(state);
  }
  map.layers.labels
    .selectAll("text")
    .data(shown, (state) => state)
    .join("text")
    .attr("class", "state-label")
    .attr("text-anchor", "middle")
    .classed("impossible", (state) => scene.possible && !scene.possible.has(state))
    .attr("x", middle)
    .attr("y", (state) => map.at(state)[1] + below)
    .text((state) => world.labels[state]);
}

// The model's moves as thin arrows, bent so that two directions do not cover each other.
function drawMoves(map, moves) {
  const arrows = [];
  for (let i = 0; i < (moves?.length ?? 0); i += 2) {
    if (moves[i] !== moves[i + 1]) arrows.push([moves[i], moves[i + 1]]);
  }
  map.layers.moves
    .selectAll("path")
    .data(arrows)
    .join("path")
    .attr("class", "move")
    .attr("d", ([a, b]) => {
      const [x1, y1] = map.at(a);
      const [x2, y2] = map.at(b);
      const length = Math.hypot(x2 - x1, y2 - y1) || 1;
      const [ux, uy] = [(x2 - x1) / length, (y2 - y1) / length];
      const gap = radiusOf(map) + 4;
      const [mx, my] = [(x1 + x2) / 2 - uy * length * 0.13, (y1 + y2) / 2 + ux * length * 0.13];
      const [ex, ey] = [x2 - ux * gap - uy * 4, y2 - uy * gap + ux * 4];
      const angle = Math.atan2(ey - my, ex - mx);
      const wing = (turn) => `${ex - 6 * Math.cos(angle + turn)},${ey - 6 * Math.sin(angle + turn)}`;
      return `M${x1 + ux * gap},${y1 + uy * gap}Q${mx},${my} ${ex},${ey}M${wing(0.45)}L${ex},${ey}L${wing(-0.45)}`;
    });
}

function drawHull(map, at) {
  const { hull } = map.scene;
  const drawn = at !== null && at !== undefined && hull?.length && map.world.answers_are_places ? [at] : [];
  map.layers.hull
    .selectAll("path")
    .data(drawn)
    .join("path")
    .attr("class", "hull-here")
    .attr("d", (state) => {
      const [x, y] = [map.places[2 * state], map.places[2 * state + 1]];
      return `M${hull.map(([dx, dy]) => `${map.x(x + dx)},${map.y(y + dy)}`).join("L")}Z`;
    });
}

function drawAdded(map, added) {
  map.layers.edges
    .selectAll("line")
    .data(added)
    .join("line")
    .attr("class", map.scene.beside ? "edge-only" : "edge-added")
    .attr("x1", ([a]) => map.at(a)[0])
    .attr("y1", ([a]) => map.at(a)[1])
    .attr("x2", ([, b]) => map.at(b)[0])
    .attr("y2", ([, b]) => map.at(b)[1]);
}

function drawSelected(map, { chosen = [], focus = null }) {
  const radius = radiusOf(map) + 4;
  const marks = [];
  for (const state of chosen) marks.push({ state, kind: "chosen" });
  if (focus !== null) marks.push({ state: focus, kind: "focus" });
  map.layers.select
    .selectAll("circle")
    .data(marks)
    .join("circle")
    .attr("class", ({ kind }) => `mark-${kind}`)
    .attr("r", radius)
    .attr("cx", ({ state }) => map.at(state)[0])
    .attr("cy", ({ state }) => map.at(state)[1]);
}

// tracks: [{ kind, points: [[x, y], ...], upto, name }], in the coordinates of the world.
function drawTracks(map, tracks) {
  const groups = map.layers.tracks
    .selectAll("g.track")
    .data(tracks)
    .join("g")
    .attr("class", ({ kind }) => `track track-${kind}`);
  groups.each(function draw({ points, upto, lone, dots, name }) {
    const seen = points.slice(0, upto ?? points.length).map(([x, y]) => [map.x(x), map.y(y)]);
    const group = d3.select(this);
    group
      .selectAll("path.way")
      .data(seen.length > 1 && !lone && !dots ? [seen.map((point) => point.join()).join("L")] : [])
      .join("path")
      .attr("class", "way")
      .attr("d", (d) => `M${d}`);
    const marked = dots ? seen : seen.slice(-1);
    const away = dots || lone ? marked.filter((point) => arrowTo(map, point)) : [];
    group
      .selectAll("circle")
      .data(marked.filter((point) => !away.includes(point)))
      .join("circle")
      .attr("r", dots ? 2.5 : 5)
      .attr("cx", ([x]) => x)
      .attr("cy", ([, y]) => y);
    // What is outside the picture is pointed at from its edge, never moved into it.
    group
      .selectAll("path.away")
      .data(away)
      .join("path")
      .attr("class", "away")
      .attr("d", dots ? "M7,0L-3,4V-4Z" : "M10,0L-5,6V-6Z")
      .attr("transform", (point) => arrowTo(map, point));
    group
      .selectAll("text")
      .data(name && marked.length ? [marked[0]] : [])
      .join("text")
      .attr("class", "who")
      .attr("text-anchor", "middle")
      .attr("x", ([x]) => x)
      .attr("y", ([, y]) => y - 9)
      .text(name);
  });
}

// Where an arrow stands for a point outside the picture, and which way it looks; null inside.
export function arrowTo({ size: [width, height] }, [x, y]) {
  if (x >= 0 && y >= 0 && x <= width && y <= height) return null;
  const [cx, cy] = [width / 2, height / 2];
  const room = 12;
  const part = Math.min((cx - room) / Math.abs(x - cx || 1e-9), (cy - room) / Math.abs(y - cy || 1e-9));
  const angle = (180 / Math.PI) * Math.atan2(y - cy, x - cx);
  return `translate(${cx + part * (x - cx)},${cy + part * (y - cy)}) rotate(${angle})`;
}

// How long a round length is on the map.
function drawScale(map) {
  const layer = map.layers.scale;
  layer.selectAll("*").remove();
  if (!map.world.places || map.scene.plain) return;
  const wanted = 110 / map.scale;
  const power = 10 ** Math.floor(Math.log10(wanted));
  const long = [5, 2, 1].map((n) => n * power).find((n) => n <= wanted) ?? power;
  const pixels = long * map.scale;
  const text = lengthOf(long, map.world.unit || "");
  const [x, y] = [map.size[0] - 16 - pixels, map.size[1] - 16];
  layer
    .append("path")
    .attr("d", `M${x},${y - 5}v5h${pixels}v-5`)
    .attr("class", "scale-line");
  layer
    .append("text")
    .attr("x", x + pixels / 2)
    .attr("y", y - 8)
    .attr("text-anchor", "middle")
    .attr("class", "scale-text")
    .text(text);
}
