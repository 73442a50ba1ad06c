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
    for (const ring of this.rings[state]) {
      context.moveTo(map.x(ring[0]), map.y(ring[1]));
      for (let i = 2; i < ring.length; i += 2) context.lineTo(map.x(ring[i]), map.y(ring[i + 1]));
      context.closePath();
    }
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

// So many outlines are one path: with each alone a path begins too often, and all in one take
// thirty times as long, as browsers look through every border for every row of pixels.
const TOGETHER = 4;

function inPaths(context, states, trace, act) {
  for (let from = 0; from < states.length; from += TOGETHER) {
    context.beginPath();
    for (const state of states.slice(from, from + TOGETHER)) trace(state);
    act();
  }
}

// Holes turn the other way than borders, so that they stay free where outlines are filled together.
export function drawOutlines(context, map) {
  const trace = (state) => map.outlines.trace(context, map, state);
  const seen = d3.range(map.world.n_states).filter((state) => map.outlines.isSeen(map, state));
  const alike = new Map();
  for (const state of seen) {
    const colour = map.paintOf(state).join();
    if (!alike.has(colour)) alike.set(colour, []);
    alike.get(colour).push(state);
  }
  for (const states of alike.values()) {
    [context.fillStyle, context.globalAlpha] = map.paintOf(states[0]);
    inPaths(context, states, trace, () => context.fill());
  }
  context.globalAlpha = 1;
  if (map.cellSize <= GAPPED) return;
  context.strokeStyle = token("surface");
  context.lineWidth = 1;
  inPaths(context, seen, trace, () => context.stroke());
}

// Exposed outlines, filled and hatched up to their borders.
export function hatchOutlines(context, map, exposed) {
  const seen = exposed.filter((state) => map.outlines.isSeen(map, state));
  const apart = Math.max(4, Math.min(10, map.cellSize / 3));
  context.globalAlpha = 0.45;
  inPaths(context, seen, (state) => map.outlines.trace(context, map, state), () => context.fill());
  context.globalAlpha = 1;
  inPaths(context, seen, (state) => map.outlines.hatch(context, map, state, apart), () => context.stroke());
}

function area(ring) {
  let twice = 0;
  for (let i = 0, j = ring.length - 2; i < ring.length; j = i, i += 2) twice += ring[j] * ring[i + 1] - ring[i] * ring[j + 1];
  return twice / 2;
}
