// The map: states on a canvas, which thousands of cells need, and marks on an SVG above it.

import { short } from "./elements.js";
import { OVER_BASE, drawBase } from "./basemap.js";
import { symbolOf, token } from "./colours.js";
import { drawMarks } from "./marks.js";

const d3 = globalThis.d3;
const MARGIN = 52;
const SIDE = 78;
const MARKED = 13;

export class StateMap {
  constructor(holder, { interactive = true } = {}) {
    this.holder = holder;
    this.canvas = d3.select(holder).append("canvas").attr("aria-hidden", "true").node();
    this.svg = d3.select(holder).append("svg").attr("class", "marks").attr("aria-hidden", "true");
    this.layers = Object.fromEntries(
      ["moves", "hull", "edges", "labels", "tracks", "select", "lasso", "scale"].map((name) => [
        name,
        this.svg.append("g").attr("class", `layer-${name}`),
      ]),
    );
    this.transform = d3.zoomIdentity;
    this.followers = new Set();
    this.scene = null;
    this.world = null;
    this.dragsMap = () => true;
    this.zoom = d3
      .zoom()
      .scaleExtent([0.5, 40])
      .filter(
        (event) =>
          event.type === "wheel" ||
          event.touches?.length > 1 ||
          event.button === 1 ||
          (event.button === 0 && this.dragsMap()),
      )
      .on("zoom", (event) => {
        this.transform = event.transform;
        this.request();
        this.onzoom?.(event.transform);
        for (const follower of this.followers) follower(event.transform);
      });
    if (interactive) this.svg.call(this.zoom).on("dblclick.zoom", null);
    this.watcher = new ResizeObserver(() => this.resize());
    this.watcher.observe(holder);
  }

  close() {
    this.watcher.disconnect();
    this.holder.replaceChildren();
  }

  show(world, places, also = []) {
    this.world = world;
    this.places = places;
    this.tree = d3.quadtree(
      d3.range(world.n_states),
      (i) => places[2 * i],
      (i) => places[2 * i + 1],
    );
    const half = (world.cell ?? 0) / 2;
    const xs = d3.extent(d3.range(world.n_states), (i) => places[2 * i]);
    const ys = d3.extent(d3.range(world.n_states), (i) => places[2 * i + 1]);
    this.bounds = widened([xs[0] - half, ys[0] - half, xs[1] + half, ys[1] + half], also);
    this.scene = null;
    this.resize();
    this.fit();
  }

  resize() {
    const { clientWidth: width, clientHeight: height } = this.holder;
    if (!width || !height || !this.world) return;
    const density = Math.min(globalThis.devicePixelRatio || 1, 2);
    this.size = [width, height];
    this.canvas.width = Math.round(width * density);
    this.canvas.height = Math.round(height * density);
    this.canvas.getContext("2d").setTransform(density, 0, 0, density, 0, 0);
    this.svg.attr("viewBox", `0 0 ${width} ${height}`);
    const [left, bottom, right, top] = this.bounds;
    // The buttons for zooming stand at the right, so the sides are kept free of states.
    const side = Math.min(SIDE, width / (this.world.cell ? 12 : 8));
    const margin = Math.min(this.world.cell ? MARGIN / 2 : MARGIN, height / 8);
    const across = Math.max(right - left, 1e-9);
    const up = Math.max(top - bottom, 1e-9);
    this.unit = Math.min((width - 2 * side) / across, (height - 2 * margin) / up);
    this.origin = [(width - this.unit * (left + right)) / 2, (height + this.unit * (bottom + top)) / 2];
    this.draw();
  }

  // From the world's coordinates, north up, to pixels.
  x(value) {
    return this.transform.applyX(this.origin[0] + this.unit * value);
  }

  y(value) {
    return this.transform.applyY(this.origin[1] - this.unit * value);
  }

  at(state) {
    return [this.x(this.places[2 * state]), this.y(this.places[2 * state + 1])];
  }

  back(px, py) {
    const [x, y] = this.transform.invert([px, py]);
    return [(x - this.origin[0]) / this.unit, (this.origin[1] - y) / this.unit];
  }

  get scale() {
    return this.unit * this.transform.k;
  }

  get cellSize() {
    return this.world.cell ? this.world.cell * this.scale : 0;
  }

  // The radius of a state that is a point: larger when there are few of them.
  get pointSize() {
    const room = Math.sqrt((this.size[0] * this.size[1]) / this.world.n_states);
    return Math.max(3, Math.min(15, room / 9)) * Math.min(1.6, Math.sqrt(this.transform.k));
  }

  stateAt(px, py) {
    const [x, y] = this.back(px, py);
    const reach = this.world.cell ? this.world.cell * 0.71 : Math.max(this.pointSize * 1.4, 14) / this.scale;
    const found = this.tree?.find(x, y, reach);
    if (found === undefined) return null;
    if (this.world.cell) {
      const inside =
        Math.abs(this.places[2 * found] - x) <= this.world.cell / 2 &&
        Math.abs(this.places[2 * found + 1] - y) <= this.world.cell / 2;
      return inside ? found : null;
    }
    return found;
  }

  // The nearest state in a direction, for the arrow keys.
  beside(state, dx, dy) {
    const [x, y] = [this.places[2 * state], this.places[2 * state + 1]];
    let best = null;
    let least = Infinity;
    for (let other = 0; other < this.world.n_states; other += 1) {
      const ahead = (this.places[2 * other] - x) * dx + (this.places[2 * other + 1] - y) * dy;
      const aside =
        Math.abs((this.places[2 * other] - x) * dy) + Math.abs((this.places[2 * other + 1] - y) * dx);
      if (other === state || ahead <= 1e-9) continue;
      const cost = ahead + 2.5 * aside;
      if (cost < least) [best, least] = [other, cost];
    }
    return best;
  }

  fit() {
    this.svg.call(this.zoom.transform, d3.zoomIdentity);
  }

  zoomBy(factor) {
    this.svg.transition().duration(150).call(this.zoom.scaleBy, factor);
  }

  // Another map that moves with this one; what comes back ends it.
  onfollow(follower) {
    this.followers.add(follower);
    follower(this.transform);
    return () => this.followers.delete(follower);
  }

  follow(transform) {
    const { k, x, y } = this.transform;
    if (k !== transform.k || x !== transform.x || y !== transform.y) this.svg.call(this.zoom.transform, transform);
  }

  zoomTo({ k, x, y }) {
    this.svg.call(this.zoom.transform, d3.zoomIdentity.translate(x, y).scale(k));
  }

  // scene: fills, possible (a Set or null for all), edges (flat pairs or null), exposed,
  // shapes, labels, and what marks.js draws.
  set(scene) {
    this.scene = scene;
    this.draw();
  }

  request() {
    if (this.asked) return;
    this.asked = requestAnimationFrame(() => {
      this.asked = 0;
      this.draw();
    });
  }

  draw() {
    if (!this.size || !this.scene) return;
    const context = this.canvas.getContext("2d");
    context.clearRect(0, 0, ...this.size);
    this.paint(context);
    drawMarks(this);
    this.drawScale();
    this.ondraw?.();
  }

  // Everything on the canvas; a recorder may stand for it, so that pictures show the same.
  paint(context) {
    drawBase(context, this);
    if (this.world.cell) this.drawCells(context);
    this.drawEdges(context);
    if (!this.world.cell) this.drawPoints(context);
    this.drawExposed(context);
  }

  drawCells(context) {
    const { fills, possible, marked } = this.scene;
    const size = this.cellSize;
    const gap = size > 6 ? 1 : 0;
    const land = token("land");
    const [width, height] = this.size;
    for (let state = 0; state < this.world.n_states; state += 1) {
      const [x, y] = this.at(state);
      if (x + size < 0 || y + size < 0 || x - size > width || y - size > height) continue;
      const can = !possible || possible.has(state);
      context.globalAlpha = (can ? 1 : 0.55) * (this.world.base ? OVER_BASE : 1);
      context.fillStyle = can ? fills[state] : land;
      context.fillRect(
        x - size / 2,
        y - size / 2,
        size - gap + (gap ? 0 : 0.6),
        size - gap + (gap ? 0 : 0.6),
      );
      if (marked && can && size >= MARKED) this.drawSymbol(context, state, x, y, size * size * 0.07);
    }
    context.globalAlpha = 1;
  }

  // A category has a shape besides its colour, so that neither alone carries the meaning.
  drawSymbol(context, state, x, y, area) {
    const { shapes } = this.scene;
    context.save();
    context.translate(x, y);
    context.beginPath();
    symbolOf(shapes.names[shapes.of[state]], shapes.of[state], area).context(context)();
    context.globalAlpha = 0.45;
    context.fillStyle = token("ink");
    context.fill();
    context.restore();
  }

  // Every exposed place, however many: filled and hatched on a grid, ringed as a point.
  drawExposed(context) {
    const exposed = this.scene.exposed ?? [];
    if (!exposed.length) return;
    const size = this.cellSize;
    const [width, height] = this.size;
    context.strokeStyle = token("alarm");
    context.fillStyle = token("alarm");
    context.lineWidth = this.world.cell ? 1.4 : 3;
    const seen = exposed.map((state) => this.at(state)).filter(([x, y]) => x > -size && y > -size && x < width + size && y < height + size);
    if (this.world.cell) {
      const half = Math.max(size / 2 - 0.5, 1);
      context.globalAlpha = 0.45;
      for (const [x, y] of seen) context.fillRect(x - half, y - half, 2 * half, 2 * half);
      context.globalAlpha = 1;
      context.beginPath();
      for (const [x, y] of seen) {
        context.moveTo(x - half, y + half);
        context.lineTo(x + half, y - half);
        if (half > 5) {
          context.moveTo(x - half, y);
          context.lineTo(x, y - half);
          context.moveTo(x, y + half);
          context.lineTo(x + half, y);
        }
      }
      context.stroke();
      return;
    }
    const ring = this.pointSize + 5;
    for (const [x, y] of seen) {
      context.beginPath();
      context.arc(x, y, ring, 0, 2 * Math.PI);
      context.stroke();
      context.beginPath();
      context.moveTo(x + ring * 0.72, y - ring * 0.72 - 7);
      context.lineTo(x + ring * 0.72 + 6.5, y - ring * 0.72 + 4.5);
      context.lineTo(x + ring * 0.72 - 6.5, y - ring * 0.72 + 4.5);
      context.closePath();
      context.fill();
    }
  }

  drawEdges(context) {
    const { edges, own } = this.scene;
    const many = (edges?.length ?? 0) / 2;
    // Many links on small cells are a hint of a texture, no more: the cells are what is looked at.
    const fine = this.world.cell ? Math.min(1, this.cellSize / 22) : 1;
    this.drawPairs(context, edges ?? [], "edge", fine * (many > 2000 ? 0.25 : many > 200 ? 0.45 : 0.85), many > 200 ? 0.8 : 2);
    // What somebody drew is always seen, whatever else there is.
    this.drawPairs(context, (own ?? []).flat(), "own", 1, 2.5);
  }

  drawPairs(context, pairs, colour, alpha, width) {
    if (!pairs.length) return;
    context.strokeStyle = token(colour);
    context.globalAlpha = alpha;
    context.lineWidth = width;
    context.beginPath();
    for (let i = 0; i < pairs.length; i += 2) {
      context.moveTo(...this.at(pairs[i]));
      context.lineTo(...this.at(pairs[i + 1]));
    }
    context.stroke();
    context.globalAlpha = 1;
  }

  drawPoints(context) {
    const { fills, possible, shapes } = this.scene;
    const radius = this.pointSize;
    for (let state = 0; state < this.world.n_states; state += 1) {
      const [x, y] = this.at(state);
      const shape = shapes
        ? symbolOf(shapes.names[shapes.of[state]], shapes.of[state], Math.PI * radius ** 2)
        : null;
      context.save();
      context.translate(x, y);
      context.beginPath();
      if (shape) shape.context(context)();
      else context.arc(0, 0, radius, 0, 2 * Math.PI);
      context.fillStyle = token("surface");
      context.fill();
      context.globalAlpha = !possible || possible.has(state) ? 1 : 0.16;
      context.fillStyle = fills[state];
      context.fill();
      context.globalAlpha = 1;
      context.strokeStyle = token("line-strong");
      context.lineWidth = 1;
      context.stroke();
      context.restore();
    }
  }

  drawScale() {
    const layer = this.layers.scale;
    layer.selectAll("*").remove();
    if (!this.world.places || this.scene.plain) return;
    const wanted = 110 / this.scale;
    const power = 10 ** Math.floor(Math.log10(wanted));
    const length = [5, 2, 1].map((n) => n * power).find((n) => n <= wanted) ?? power;
    const pixels = length * this.scale;
    const unit = this.world.unit || "";
    const text =
      unit === "km" && length < 1 ? `${short(length * 1000)} m` : `${short(length)} ${unit}`.trim();
    const [x, y] = [this.size[0] - 16 - pixels, this.size[1] - 16];
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
}

// Bounds that also hold most of some points, but never so many that the map is a dot.
function widened([left, bottom, right, top], points) {
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
