// The map: states on a canvas, which thousands of cells need, and marks on an SVG above it.

import { OVER_BASE, drawBase } from "./basemap.js";
import { symbolOf, token } from "./colours.js";
import { widened } from "./layout.js";
import { drawMarks } from "./marks.js";
import { GAPPED, Outlines, drawOutlines, hatchOutlines } from "./outlines.js";

const d3 = globalThis.d3;
const MARGIN = 52;
const SIDE = 78;
const BUTTONS = 50;
const NAMED = 42;
// An area that is wider than so many pixels has a symbol.
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
      .on("zoom", ({ transform }) => {
        this.transform = transform;
        this.request();
        this.onzoom?.(transform);
        for (const follower of this.followers) follower(transform);
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
    const [xs, ys] = [0, 1].map((axis) => d3.extent(d3.range(world.n_states), (i) => places[2 * i + axis]));
    this.outlines = world.outlines ? new Outlines(world.outlines) : null;
    const all = this.outlines?.bounds ?? [xs[0] - half, ys[0] - half, xs[1] + half, ys[1] + half];
    this.bounds = widened(all, also);
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
    const side = Math.min(SIDE, this.hasAreas ? Math.max(width / 12, Math.min(BUTTONS, width / 10)) : width / 8);
    // Below a point stands its name.
    const margin = this.hasAreas ? Math.min(MARGIN / 2, height / 8) : Math.max(NAMED, Math.min(MARGIN, height / 8));
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

  // Whether states are drawn as areas: squares of a grid, or their own outlines.
  get hasAreas() {
    return Boolean(this.world.cell || this.outlines);
  }

  // About how wide an area is.
  get cellSize() {
    return (this.world.cell ?? this.outlines?.span ?? 0) * this.scale;
  }

  // The radius of a state that is a point: larger where there are few.
  get pointSize() {
    const room = Math.sqrt((this.size[0] * this.size[1]) / this.world.n_states);
    return Math.max(3, Math.min(15, room / 9)) * Math.min(1.6, Math.sqrt(this.transform.k));
  }

  stateAt(px, py) {
    const [x, y] = this.back(px, py);
    if (this.outlines) return this.outlines.at(x, y);
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
    this.ondraw?.();
  }

  // Everything on the canvas; a recorder may stand for it, so that pictures show the same.
  paint(context) {
    this.land = token("land");
    drawBase(context, this);
    if (this.outlines) drawOutlines(context, this);
    else if (this.world.cell) this.drawCells(context);
    if (this.hasAreas && this.scene.marked && this.cellSize >= MARKED) this.drawSymbols(context);
    this.drawEdges(context);
    if (!this.hasAreas) this.drawPoints(context);
    this.drawExposed(context);
  }

  drawCells(context) {
    const size = this.cellSize;
    const gap = size > GAPPED ? 1 : 0;
    const [width, height] = this.size;
    for (let state = 0; state < this.world.n_states; state += 1) {
      const [x, y] = this.at(state);
      if (x + size < 0 || y + size < 0 || x - size > width || y - size > height) continue;
      [context.fillStyle, context.globalAlpha] = this.paintOf(state);
      context.fillRect(x - size / 2, y - size / 2, size - gap + (gap ? 0 : 0.6), size - gap + (gap ? 0 : 0.6));
    }
    context.globalAlpha = 1;
  }

  canBe(state) {
    return !this.scene.possible || this.scene.possible.has(state);
  }

  // The colour of an area, and how much of what lies below it is covered.
  paintOf(state) {
    const below = this.world.base ? OVER_BASE : 1;
    return this.canBe(state) ? [this.scene.fills[state], below] : [this.land, 0.55 * below];
  }

  // A category has a shape besides its colour, so that neither alone carries the meaning.
  drawSymbols(context) {
    const { shapes } = this.scene;
    const size = this.cellSize;
    const [width, height] = this.size;
    const drawn = shapes.names.map((name, number) => symbolOf(name, number, size * size * 0.07).context(context));
    context.fillStyle = token("ink");
    for (let state = 0; state < this.world.n_states; state += 1) {
      const [x, y] = this.at(state);
      if (x + size < 0 || y + size < 0 || x - size > width || y - size > height || !this.canBe(state)) continue;
      context.save();
      context.translate(x, y);
      context.beginPath();
      drawn[shapes.of[state]]();
      context.globalAlpha = 0.45;
      context.fill();
      context.restore();
    }
  }

  // Every exposed place, however many: filled and hatched on a grid, ringed as a point.
  drawExposed(context) {
    const exposed = this.scene.exposed ?? [];
    if (!exposed.length) return;
    const size = this.cellSize;
    const [width, height] = this.size;
    context.strokeStyle = token("alarm");
    context.fillStyle = token("alarm");
    context.lineWidth = this.hasAreas ? 1.4 : 3;
    if (this.outlines) {
      hatchOutlines(context, this, exposed);
      return;
    }
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
    const fine = this.hasAreas ? Math.min(1, this.cellSize / 22) : 1;
    const width = many > 200 ? 0.8 : 2;
    const alpha = fine * (many > 2000 ? 0.25 : many > 200 ? 0.45 : 0.85) * Math.min(1, 1 / this.inkOf(edges ?? [], width));
    this.drawPairs(context, edges ?? [], "edge", alpha, width);
    // What somebody drew is always seen, whatever else there is.
    this.drawPairs(context, (own ?? []).flat(), "own", 1, 2.5);
  }

  // How often links cover the map: long ones are drawn fainter, so that what lies below is seen.
  inkOf(pairs, width) {
    const [left, bottom, right, top] = this.bounds;
    let length = 0;
    for (let i = 0; i < pairs.length; i += 2) {
      const [a, b] = [2 * pairs[i], 2 * pairs[i + 1]];
      length += Math.hypot(this.places[a] - this.places[b], this.places[a + 1] - this.places[b + 1]);
    }
    return (length * width) / (this.scale * Math.max((right - left) * (top - bottom), 1e-9));
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
}
