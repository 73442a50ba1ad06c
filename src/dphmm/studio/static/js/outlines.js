// States that are hexagons or other polygons: where their corners are, who is under the pointer,
// and hatching that ends at their borders.

import { token } from "./colours.js";

const d3 = globalThis.d3;
// Areas that are wider than so many pixels have borders.
export const GAPPED = 6;

// rings: for each state flat lists x, y, x, y... of its borders and holes.
export class Outlines {
  constructor(rings) {
    this.rings = rings;
    this.boxes = rings.map((own) => {
      const corners = own.flat();
      const xs = corners.filter((_, i) => i % 2 === 0);
      const ys = corners.filter((_, i) => i % 2 === 1);
      return [d3.min(xs), d3.min(ys), d3.max(xs), d3.max(ys)];
    });
    // About how wide a state is: the side of a square of the same area, of the middle one.
    this.span = d3.quantile(rings.map((own) => Math.sqrt(Math.abs(own.reduce((sum, ring) => sum + area(ring), 0)))), 0.5);
  }

  get bounds() {
    const end = (pick, i) => pick(this.boxes, (box) => box[i]);
    return [end(d3.min, 0), end(d3.min, 1), end(d3.max, 2), end(d3.max, 3)];
  }

  // Whether any of a state is on the screen.
  isSeen(map, state) {
    const [left, bottom, right, top] = this.boxes[state];
    return map.x(right) > 0 && map.x(left) < map.size[0] && map.y(bottom) > 0 && map.y(top) < map.size[1];
  }

  // The state around a point; on a common border the first.
  at(x, y) {
    const inside = this.boxes.findIndex(
      ([left, bottom, right, top], state) => x >= left && x <= right && y >= bottom && y <= top && this.contains(state, x, y),
    );
    return inside < 0 ? null : inside;
  }

  // An odd number of borders lies east of what is inside.
  contains(state, x, y) {
    let odd = false;
    for (const ring of this.rings[state]) {
      for (let i = 0, j = ring.length - 2; i < ring.length; j = i, i += 2) {
        const [xi, yi, xj, yj] = [ring[i], ring[i + 1], ring[j], ring[j + 1]];
        if (yi > y !== yj > y && x < ((xj - xi) * (y - yi)) / (yj - yi) + xi) odd = !odd;
      }
    }
    return odd;
  }

  // The borders of a state as a path of pixels. map: what turns the plane into pixels.
  trace(context, map, state) {
    const [x, y, scale] = [map.x(0), map.y(0), map.scale];
    for (const ring of this.rings[state]) {
      context.moveTo(x + scale * ring[0], y - scale * ring[1]);
      for (let i = 2; i < ring.length; i += 2) context.lineTo(x + scale * ring[i], y - scale * ring[i + 1]);
      context.closePath();
    }
  }

  // Every side once, as x, y, x, y, also where two states have it in common.
  get sides() {
    if (this.all) return this.all;
    const seen = new Set();
    this.all = [];
    for (const ring of this.rings.flat()) {
      for (let i = 0, j = ring.length - 2; i < ring.length; j = i, i += 2) {
        const [xi, yi, xj, yj] = [ring[i], ring[i + 1], ring[j], ring[j + 1]];
        const key = xi < xj || (xi === xj && yi < yj) ? `${xi},${yi},${xj},${yj}` : `${xj},${yj},${xi},${yi}`;
        if (seen.has(key)) continue;
        seen.add(key);
        this.all.push([xi, yi, xj, yj]);
      }
    }
    return this.all;
  }

  // Rising lines inside the borders, so many pixels apart everywhere on the map.
  hatch(context, map, state, apart) {
    const sides = [];
    for (const ring of this.rings[state]) {
      for (let i = 0, j = ring.length - 2; i < ring.length; j = i, i += 2)
        sides.push([map.x(ring[j]), map.y(ring[j + 1]), map.x(ring[i]), map.y(ring[i + 1])]);
    }
    const sums = sides.map(([x, y]) => x + y);
    for (let sum = Math.ceil(d3.min(sums) / apart) * apart; sum < d3.max(sums); sum += apart) {
      const crossings = [];
      for (const [x1, y1, x2, y2] of sides) {
        const [from, to] = [x1 + y1 - sum, x2 + y2 - sum];
        if (from > 0 !== to > 0) crossings.push(x1 + ((x2 - x1) * from) / (from - to));
      }
      crossings.sort((a, b) => a - b);
      for (let i = 0; i + 1 < crossings.length; i += 2) {
        context.moveTo(crossings[i], sum - crossings[i]);
        context.lineTo(crossings[i + 1], sum - crossings[i + 1]);
      }
    }
  }
}

// Each outline is a path of its own: browsers look through every side of a path for every row of
// pixels, so a hundred outlines in one take three times as long as one after the other.
function fillEach(context, map, states, prepare = () => {}) {
  for (const state of states) {
    if (!map.outlines.isSeen(map, state)) continue;
    prepare(state);
    context.beginPath();
    map.outlines.trace(context, map, state);
    context.fill();
  }
}

// So many sides are one path, for the same reason; they are drawn as lines, which begin more often.
const TOGETHER = 64;

function strokeSides(context, map) {
  const [x, y, scale] = [map.x(0), map.y(0), map.scale];
  const [width, height] = map.size;
  let drawn = 0;
  context.beginPath();
  for (const [x1, y1, x2, y2] of map.outlines.sides) {
    const [ax, ay, bx, by] = [x + scale * x1, y - scale * y1, x + scale * x2, y - scale * y2];
    if (Math.max(ax, bx) < 0 || Math.max(ay, by) < 0 || Math.min(ax, bx) > width || Math.min(ay, by) > height) continue;
    context.moveTo(ax, ay);
    context.lineTo(bx, by);
    drawn += 1;
    if (drawn % TOGETHER) continue;
    context.stroke();
    context.beginPath();
  }
  context.stroke();
}

export function drawOutlines(context, map) {
  fillEach(context, map, d3.range(map.world.n_states), (state) => {
    [context.fillStyle, context.globalAlpha] = map.paintOf(state);
  });
  context.globalAlpha = 1;
  if (map.cellSize <= GAPPED) return;
  context.strokeStyle = token("surface");
  context.lineWidth = 1;
  strokeSides(context, map);
}

// Exposed outlines, filled and hatched up to their borders.
export function hatchOutlines(context, map, exposed) {
  const apart = Math.max(4, Math.min(10, map.cellSize / 3));
  context.globalAlpha = 0.45;
  fillEach(context, map, exposed);
  context.globalAlpha = 1;
  for (const state of exposed) {
    if (!map.outlines.isSeen(map, state)) continue;
    context.beginPath();
    map.outlines.hatch(context, map, state, apart);
    context.stroke();
  }
}

function area(ring) {
  let twice = 0;
  for (let i = 0, j = ring.length - 2; i < ring.length; j = i, i += 2) twice += ring[j] * ring[i + 1] - ring[i] * ring[j + 1];
  return twice / 2;
}
