// Pictures of what is on the page, whole in one file, with the colours as they are seen.

import { token } from "./colours.js";

const NAMESPACE = "http://www.w3.org/2000/svg";
const SEEN = [
  "fill",
  "fill-opacity",
  "stroke",
  "stroke-width",
  "stroke-dasharray",
  "stroke-opacity",
  "opacity",
  "font-size",
  "font-family",
  "font-weight",
  "stroke-linejoin",
  "stroke-linecap",
  "paint-order",
];

function dressed(original) {
  const copy = original.cloneNode(true);
  const from = [original, ...original.querySelectorAll("*")];
  const to = [copy, ...copy.querySelectorAll("*")];
  from.forEach((element, i) => {
    const style = getComputedStyle(element);
    for (const name of SEEN) {
      const value = style.getPropertyValue(name);
      if (value) to[i].setAttribute(name, value);
    }
    to[i].removeAttribute("class");
  });
  return copy;
}

export function plotSvg(svg) {
  const copy = dressed(svg);
  const [, , width, height] = svg.getAttribute("viewBox").split(" ");
  copy.setAttribute("xmlns", NAMESPACE);
  copy.setAttribute("width", width);
  copy.setAttribute("height", height);
  return new XMLSerializer().serializeToString(copy);
}

// Several plots under each other, each with its title.
export function plotsSvg(plots) {
  const row = 156;
  const parts = plots.map(
    ([title, svg], i) =>
      `<text x="8" y="${i * row + 16}" font-family="sans-serif" font-size="12" fill="${token("ink")}">${title}</text>` +
      plotSvg(svg).replace("<svg ", `<svg x="0" y="${i * row + 22}" `),
  );
  const height = plots.length * row;
  const width = Math.max(...plots.map(([, svg]) => svg.viewBox.baseVal.width));
  return (
    `<svg xmlns="${NAMESPACE}" width="${width}" height="${height}" viewBox="0 0 ${width} ${height}">` +
    `<rect width="100%" height="100%" fill="${token("surface")}"/>${parts.join("")}</svg>`
  );
}

// The canvas again, but as shapes: what the map draws is written down instead.
class Recorder {
  constructor() {
    this.parts = [];
    this.globalAlpha = 1;
    this.path = "";
    this.place = "";
    this.stack = [];
  }

  clearRect() {}

  save() {
    this.stack.push([this.globalAlpha, this.place]);
  }

  restore() {
    [this.globalAlpha, this.place] = this.stack.pop();
  }

  translate(x, y) {
    this.place = ` transform="translate(${x.toFixed(2)},${y.toFixed(2)})"`;
  }

  fillRect(x, y, width, height) {
    this.parts.push(
      `<rect x="${x.toFixed(2)}" y="${y.toFixed(2)}" width="${width.toFixed(2)}" height="${height.toFixed(2)}" fill="${this.fillStyle}" fill-opacity="${this.globalAlpha}"/>`,
    );
  }

  beginPath() {
    this.path = "";
  }

  moveTo(x, y) {
    this.path += `M${x.toFixed(2)},${y.toFixed(2)}`;
  }

  lineTo(x, y) {
    this.path += `L${x.toFixed(2)},${y.toFixed(2)}`;
  }

  rect(x, y, width, height) {
    this.path += `M${x},${y}h${width}v${height}h${-width}z`;
  }

  arc(x, y, radius) {
    this.path += `M${x - radius},${y}a${radius},${radius} 0 1 0 ${2 * radius},0a${radius},${radius} 0 1 0 ${-2 * radius},0z`;
  }

  closePath() {
    this.path += "z";
  }

  fill(rule = "nonzero") {
    this.parts.push(
      `<path d="${this.path}" fill="${this.fillStyle}" fill-rule="${rule}" fill-opacity="${this.globalAlpha}"${this.place}/>`,
    );
  }

  stroke() {
    this.parts.push(
      `<path d="${this.path}" fill="none" stroke="${this.strokeStyle}" stroke-width="${this.lineWidth}" stroke-opacity="${this.globalAlpha}"${this.place}/>`,
    );
  }
}

// The map alone, without a frame around it.
export function mapSvg(map) {
  const recorder = new Recorder();
  map.paint(recorder);
  const [width, height] = map.size;
  const marks = new XMLSerializer().serializeToString(dressed(map.svg.node()));
  return (
    `<svg xmlns="${NAMESPACE}" width="${width}" height="${height}" viewBox="0 0 ${width} ${height}">` +
    `<rect width="100%" height="100%" fill="${token("surface")}"/>${recorder.parts.join("")}${marks}</svg>`
  );
}

export async function toPng(text, density) {
  const image = new Image();
  image.src = `data:image/svg+xml;charset=utf-8,${encodeURIComponent(text)}`;
  await image.decode();
  const canvas = document.createElement("canvas");
  canvas.width = image.width * density;
  canvas.height = image.height * density;
  canvas.getContext("2d").drawImage(image, 0, 0, canvas.width, canvas.height);
  return new Promise((resolve) => {
    canvas.toBlob(resolve, "image/png");
  });
}
