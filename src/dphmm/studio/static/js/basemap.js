// Water, parks, streets and districts under the states, as the server cut them to the map.

import { isDark } from "./colours.js";

// The report has the same colours; a test compares them.
const LIGHT = { water: "#b7d3e6", green: "#d5e4cb", street: "#c2bfb4", district: "#dedcd3" };
const DARK = { water: "#24404f", green: "#24352a", street: "#4a525a", district: "#323a42" };
const WIDTHS = { stream: 2, path: 0.6, street: 1.3, district: 1.2 };
const AREAS = ["district", "green", "water"];
const LINES = ["stream", "path", "street"];

// How much of what lies below a cell is seen through it.
export const OVER_BASE = 0.62;

export function baseColour(kind) {
  const colours = isDark() ? DARK : LIGHT;
  return { stream: colours.water, path: colours.street }[kind] ?? colours[kind];
}

// map: what turns the plane into pixels, with x(), y(), size and world.base.
export function drawBase(context, map) {
  const { base } = map.world;
  if (!base) return;
  context.save();
  context.lineJoin = "round";
  for (const kind of AREAS) {
    trace(context, map, base.areas[kind] ?? [], true);
    context.fillStyle = baseColour(kind);
    context.strokeStyle = baseColour(kind);
    context.lineWidth = WIDTHS.district;
    if (kind === "district") context.stroke();
    else context.fill("evenodd");
  }
  for (const kind of LINES) {
    trace(context, map, base.lines[kind] ?? [], false);
    context.strokeStyle = baseColour(kind);
    context.lineWidth = WIDTHS[kind];
    context.stroke();
  }
  context.restore();
}

function trace(context, map, shapes, closed) {
  context.beginPath();
  for (const points of shapes) {
    context.moveTo(map.x(points[0]), map.y(points[1]));
    for (let i = 2; i < points.length; i += 2) context.lineTo(map.x(points[i]), map.y(points[i + 1]));
    if (closed) context.closePath();
  }
}
