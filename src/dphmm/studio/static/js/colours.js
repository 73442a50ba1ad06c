// Colours that people with any colour vision can tell apart, for light and for dark.

const d3 = globalThis.d3;

// Okabe and Ito's palette, a little calmer; categories beyond eight repeat.
const LIGHT = ["#3b7ea1", "#e0a030", "#2f9e7a", "#c877a5", "#8a8f98", "#b5541c", "#7d6bb0", "#9a9a3c"];
const DARK = ["#6fb3d6", "#f0bd55", "#4fc79f", "#e39cc4", "#a6adb8", "#e88650", "#a897dd", "#c6c665"];

// One hue path, lightness in one direction: readable in grey as well.
const RAMP_LIGHT = ["#eef1ee", "#c3ddd4", "#7fbdb8", "#3b8f9c", "#1f5f80", "#152f57"];
const RAMP_DARK = ["#232a30", "#1f4659", "#23707f", "#37a08f", "#93cf8c", "#f3f0b0"];

export function isDark() {
  return document.documentElement.dataset.theme === "dark";
}

// On a grid whole areas have one colour, so it is softened: edges and marks must stand out.
export function categoryColour(number, onGrid = false) {
  const palette = isDark() ? DARK : LIGHT;
  const colour = palette[number % palette.length];
  return onGrid ? d3.interpolateRgb(token("surface"), colour)(isDark() ? 0.5 : 0.52) : colour;
}

export function ramp() {
  return d3.interpolateRgbBasis(isDark() ? RAMP_DARK : RAMP_LIGHT);
}

export function inkOn(colour) {
  const { r, g, b } = d3.rgb(colour);
  return 0.299 * r + 0.587 * g + 0.114 * b > 140 ? "#1d2329" : "#ffffff";
}

export function token(name) {
  return getComputedStyle(document.documentElement).getPropertyValue(`--${name}`).trim();
}

const NAMED = {
  circle: d3.symbolCircle,
  square: d3.symbolSquare,
  diamond: d3.symbolDiamond,
  triangle: d3.symbolTriangle,
  star: d3.symbolStar,
  cross: d3.symbolCross,
  octagon: { draw: octagon },
};
const ORDER = [
  d3.symbolCircle,
  d3.symbolSquare,
  d3.symbolDiamond,
  d3.symbolTriangle,
  d3.symbolStar,
  d3.symbolCross,
  d3.symbolWye,
  NAMED.octagon,
];

function octagon(context, size) {
  const radius = Math.sqrt(size / 2.83);
  for (let corner = 0; corner < 8; corner += 1) {
    const angle = Math.PI * (0.125 + corner / 4);
    const point = [radius * Math.cos(angle), radius * Math.sin(angle)];
    if (corner) context.lineTo(...point);
    else context.moveTo(...point);
  }
  context.closePath();
}

// A category's shape goes with its colour, so that neither alone carries the meaning.
export function symbolOf(name, number, size) {
  return d3.symbol(NAMED[name] ?? ORDER[number % ORDER.length], size);
}

// The colours of all states, and what the legend says about them.
export function colouring(kind, world, labels, effects, posterior) {
  if (kind === "category" || (kind === "posterior" && !posterior)) {
    const palette = labels.names.map((_, number) => categoryColour(number, Boolean(world.cell)));
    return {
      fills: labels.categories.map((number) => palette[number]),
      legend: { kind: "category", names: labels.names },
    };
  }
  const values = kind === "degree" ? effects.degree : kind === "prior" ? effects.prior : posterior;
  const most = d3.max(values) || 1;
  const paint = ramp();
  // Degrees run over hundreds on a map, so their colour follows the square root.
  const bend = kind === "degree" ? Math.sqrt : (x) => x;
  return {
    fills: values.map((value) => paint(bend(value / most))),
    legend: { kind: "ramp", what: kind, most, middle: kind === "degree" ? Math.round(most / 4) : most / 2 },
  };
}
