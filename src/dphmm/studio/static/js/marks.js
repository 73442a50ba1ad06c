// The marks above the map: exposed states, names, chosen states, the hull where the pointer is,
// tracks of a walk. They are SVG elements, so that few of them look sharp and can be exported.

const d3 = globalThis.d3;
const MOST_RINGS = 600;
const MOST_LABELS = 120;

export function drawMarks(map) {
  const { scene } = map;
  drawExposed(map, scene.exposed ?? []);
  drawLabels(map);
  drawMoves(map, scene.moves);
  drawHull(map, scene.hullAt);
  drawAdded(map, scene.added ?? []);
  drawSelected(map, scene);
  drawTracks(map, scene.tracks ?? []);
}

const visible = (map) => (state) => {
  const [x, y] = map.at(state);
  return x > -20 && y > -20 && x < map.size[0] + 20 && y < map.size[1] + 20;
};

function radiusOf(map) {
  return map.world.cell ? Math.max(map.cellSize * 0.5, 4) : map.pointSize;
}

function drawExposed(map, exposed) {
  const shown = exposed.filter(visible(map)).slice(0, MOST_RINGS);
  const { cell } = map.world;
  const radius = radiusOf(map) + (cell ? 0 : 5);
  // A square on a grid and a ring around a point; few of them also get a sign.
  const half = Math.max(radius - 1.5, 1);
  const shape = cell
    ? `M${-half},${-half}h${2 * half}v${2 * half}h${-2 * half}z`
    : `M${-radius},0a${radius},${radius} 0 1 0 ${2 * radius},0a${radius},${radius} 0 1 0 ${-2 * radius},0z`;
  const away = radius * 0.72;
  const sign =
    radius < 9 || shown.length > 60
      ? null
      : cell
        ? "M0,-7l6.5,11.5h-13z"
        : `M${away},${-away - 7}l6.5,11.5h-13z`;
  const rings = map.layers.exposed.selectAll("g").data(shown, (state) => state);
  const entering = rings.enter().append("g").attr("class", "exposed-mark");
  entering.append("path").attr("class", "ring");
  entering.append("path").attr("class", "badge");
  entering
    .merge(rings)
    .attr("data-state", (state) => state)
    .attr("transform", (state) => `translate(${map.at(state)})`)
    .classed("many", shown.length > 60)
    .each(function place() {
      d3.select(this).select(".ring").attr("d", shape);
      d3.select(this).select(".badge").attr("d", sign);
    });
  rings.exit().remove();
}

function drawLabels(map) {
  const { scene, world } = map;
  const every = d3.range(world.n_states);
  const roomy = world.cell ? map.cellSize > 34 : map.pointSize > 6;
  let shown = scene.labels && roomy ? every.filter(visible(map)) : [];
  if (shown.length > MOST_LABELS) shown = [];
  const below = radiusOf(map) + 20;
  map.layers.labels
    .selectAll("text")
    .data(shown, (state) => state)
    .join("text")
    .attr("class", "state-label")
    .attr("text-anchor", "middle")
    .classed("impossible", (state) => scene.possible && !scene.possible.has(state))
    .attr("x", (state) => map.at(state)[0])
    .attr("y", (state) => map.at(state)[1] + (world.cell ? 4 : below))
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
    .attr("class", "edge-added")
    .attr("x1", ([a]) => map.at(a)[0])
    .attr("y1", ([a]) => map.at(a)[1])
    .attr("x2", ([, b]) => map.at(b)[0])
    .attr("y2", ([, b]) => map.at(b)[1]);
}

function drawSelected(map, { chosen = [], focus = null, start = null }) {
  const radius = radiusOf(map) + 4;
  const marks = [];
  if (start !== null) marks.push({ state: start, kind: "start" });
  for (const state of chosen) marks.push({ state, kind: "chosen" });
  if (focus !== null) marks.push({ state: focus, kind: "focus" });
  map.layers.select
    .selectAll("circle")
    .data(marks)
    .join("circle")
    .attr("class", ({ kind }) => `mark-${kind}`)
    .attr("r", ({ kind }) => radius + (kind === "start" ? 3 : 0))
    .attr("cx", ({ state }) => map.at(state)[0])
    .attr("cy", ({ state }) => map.at(state)[1]);
}

// tracks: [{ kind, points: [[x, y], ...], upto }], in the coordinates of the world.
function drawTracks(map, tracks) {
  const groups = map.layers.tracks
    .selectAll("g.track")
    .data(tracks)
    .join("g")
    .attr("class", ({ kind }) => `track track-${kind}`);
  groups.each(function draw({ points, upto, lone }) {
    const seen = points.slice(0, upto ?? points.length);
    const path = seen.map(([x, y]) => `${map.x(x)},${map.y(y)}`).join("L");
    const group = d3.select(this);
    group
      .selectAll("path")
      .data(seen.length > 1 && !lone ? [path] : [])
      .join("path")
      .attr("d", (d) => `M${d}`);
    group
      .selectAll("circle")
      .data(seen.length ? [seen[seen.length - 1]] : [])
      .join("circle")
      .attr("r", 5)
      .attr("cx", ([x]) => map.x(x))
      .attr("cy", ([, y]) => map.y(y));
  });
}
