// Where states are drawn, and what of the plane a map shows.

const d3 = globalThis.d3;

// Bounds that also hold most of some points, but never so many that the map is a dot.
export function widened([left, bottom, right, top], points) {
  const [across, up] = [Math.max(right - left, 1e-9), Math.max(top - bottom, 1e-9)];
  const reach = 0.15 * Math.max(across, up);
  const low = (values, edge) => Math.max(edge - reach, Math.min(edge, d3.quantile(values, 0.05) ?? edge));
  const high = (values, edge) => Math.min(edge + reach, Math.max(edge, d3.quantile(values, 0.95) ?? edge));
  const xs = points.map(([x]) => x);
  const ys = points.map(([, y]) => y);
  return [low(xs, left), low(ys, bottom), high(xs, right), high(ys, top)];
}

// Places for a chain that has none: a force layout, the same every time.
export function layout(world) {
  if (world.places) return world.places;
  const nodes = d3.range(world.n_states).map((index) => ({ index }));
  const links = [];
  for (let i = 0; i < (world.moves?.length ?? 0); i += 2) {
    if (world.moves[i] !== world.moves[i + 1])
      links.push({ source: world.moves[i], target: world.moves[i + 1] });
  }
  const ticks = world.n_states > 800 ? 60 : 300;
  d3.forceSimulation(nodes)
    .force("link", d3.forceLink(links).distance(1.6).strength(0.3))
    .force("charge", d3.forceManyBody().strength(-1.4))
    .force("centre", d3.forceCenter(0, 0))
    .force("collide", d3.forceCollide(0.5))
    .stop()
    .tick(ticks);
  return nodes.flatMap(({ x, y }) => [x, y]);
}
