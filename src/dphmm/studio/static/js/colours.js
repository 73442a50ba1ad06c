// Colours that people with any colour vision can tell apart, for light and for dark.

const d3 = globalThis.d3;

// Any two differ by 12 or more (CIEDE2000), also for people who see no red, no green or no blue;
// a test computes it, and that reports have the same. More categories share the last colour as "other".
const LIGHT = ["#9ec9f3", "#f2c14e", "#64ab8d", "#af82a1", "#b9bdc4", "#d27e55", "#8374c1", "#e4e9ad"];
const DARK = ["#5293c5", "#ba8a1d", "#2f7f63", "#85426c", "#787f89", "#b0552c", "#6554ab", "#b5bb76"];
export const MOST_CATEGORIES = LIGHT.length;

// One hue path, lightness in one direction: readable in grey as well.
const RAMP_LIGHT = ["#eef1ee", "#c3ddd4", "#7fbdb8", "#3b8f9c", "#1f5f80", "#152f57"];
const RAMP_DARK = ["#232a30", "#1f4659", "#23707f", "#37a08f", "#93cf8c", "#f3f0b0"];

export function isDark() {
  return document.documentElement.dataset.theme === "dark";
}

export function categoryColour(number) {
  return (isDark() ? DARK : LIGHT)[Math.min(number, MOST_CATEGORIES - 1)];
}

export function ramp() {
  return d3.interpolateRgbBasis(isDark() ? RAMP_DARK : RAMP_LIGHT);
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
  return d3.symbol(NAMED[name] ?? ORDER[Math.min(number, ORDER.length - 1)], size);
}

// The colours of all states, and what the legend says about them.
export function colouring(kind, world, labels, effects, posterior) {
  if (kind === "category" || (kind === "posterior" && !posterior)) {
    const palette = labels.names.map((_, number) => categoryColour(number));
    return {
      fills: labels.categories.map((number) => palette[number]),
      legend: { kind: "category", names: labels.names },
    };
  }
  const values = kind === "degree" ? effects.degree : kind === "prior" ? effects.prior : posterior;
  const most = effects.most?.[kind] || d3.max(values) || 1;
  const paint = ramp();
  // Degrees run over hundreds on a map, so their colour follows the square root.
  const bend = kind === "degree" ? Math.sqrt : (x) => x;
  return {
    fills: values.map((value) => paint(bend(value / most))),
    legend: { kind: "ramp", what: kind, most, middle: kind === "degree" ? Math.round(most / 4) : most / 2 },
  };
}
