// What is taken away says what it is: a picture with title, legend, unit and fingerprint, and one
// page in one file with the picture, the numbers and the scenario's own text.

import { symbolOf, categoryColour, ramp, token, MOST_CATEGORIES } from "./colours.js";
import { addedWords, namedTracks } from "./scene.js";

const NAMESPACE = "http://www.w3.org/2000/svg";
const FONT = 'font-family="system-ui, sans-serif"';

export function escape(text) {
  return String(text).replaceAll("&", "&amp;").replaceAll("<", "&lt;").replaceAll(">", "&gt;").replaceAll('"', "&quot;");
}

// Break a sentence into lines of at most so many letters.
export function wrap(text, most) {
  const lines = [""];
  for (const part of String(text).split(" ")) {
    const last = lines.at(-1);
    if (last && last.length + 1 + part.length > most) lines.push(part);
    else lines[lines.length - 1] = last ? `${last} ${part}` : part;
  }
  return lines;
}

// The tracks of people as they are drawn, small.
const TRACK = {
  truth: () => dot("none", "ink", "M-9,0H9", "1 4"),
  other: () => dot("none", "ink-soft", "M-9,0H9", "1 4"),
  answer: () => dot("none", "alarm"),
  estimate: () => dot("accent", "surface"),
  lagged: () => dot("surface", "accent", "M-9,0H9", "6 4"),
  smoothed: () => dot("b", "surface", "M-9,0H9"),
  away: () => `<path d="M7,0L-5,6V-6Z" fill="${token("alarm")}"/>`,
};

function dot(inside, border, way = "", dash = "none") {
  const line = way ? `<path d="${way}" stroke="${token(inside === "b" ? "b" : border)}" stroke-width="2" stroke-dasharray="${dash}"/>` : "";
  return `${line}<circle r="4.5" fill="${inside === "none" ? (way ? token("surface") : "none") : token(inside)}" stroke="${token(border)}" stroke-width="2"/>`;
}

// The rows of a legend: { mark, text }, the mark as SVG around (0, 0). `away`: whether an arrow
// points off the map.
export function legendOf(scene, names, away) {
  const line = (colour, dash) => `<path d="M-8,0H8" stroke="${colour}" stroke-width="2.5"${dash ? ' stroke-dasharray="4 3"' : ""}/>`;
  const rows = [];
  if (scene.legend.kind === "category") {
    const few = names.length > MOST_CATEGORIES ? [...names.slice(0, MOST_CATEGORIES - 1), `other (${names.length - MOST_CATEGORIES + 1})`] : names;
    few.forEach((name, number) => rows.push({ mark: `<path d="${symbolOf(name, number, 110)()}" fill="${categoryColour(number)}"/>`, text: name }));
  } else {
    const paint = ramp();
    const { most, middle, what } = scene.legend;
    const words = { degree: "hidden among", prior: "likely before an answer", posterior: "likely after it" }[what];
    for (const [share, value] of [[0, 0], [0.5, middle], [1, most]])
      rows.push({ mark: `<rect x="-7" y="-7" width="14" height="14" fill="${paint(share)}" stroke="${token("line-strong")}"/>`, text: `${share ? "" : `${words} `}${Number(value.toPrecision(2))}` });
  }
  if (scene.exposed.length) rows.push({ mark: `<rect x="-7" y="-7" width="14" height="14" fill="none" stroke="${token("alarm")}" stroke-width="2"/><path d="M-7,7L7,-7" stroke="${token("alarm")}" stroke-width="2"/>`, text: `exposed (${scene.exposed.length})` });
  if (scene.added.length) rows.push({ mark: line(token("accent"), true), text: addedWords(scene) });
  if (scene.edges?.length || scene.own?.length) rows.push({ mark: line(token("edge")), text: `must look alike${scene.thinned ? ` (${scene.thinned} links drawn)` : ""}` });
  for (const [kind, text] of namedTracks(scene, away)) rows.push({ mark: TRACK[kind](), text });
  return rows;
}

// A picture of some size inside a frame with its title, legend and origin.
export function framed(inner, [width, height], { title, lines, legend, origin }) {
  const ink = token("ink");
  const soft = token("ink-soft");
  const letters = Math.max(30, Math.floor((width - 24) / 7));
  const head = lines.flatMap((line) => wrap(line, letters));
  const top = 40 + 18 * head.length;
  let [x, y] = [20, top + height + 22];
  const marks = legend.map(({ mark, text }) => {
    const wide = 30 + 7.2 * text.length;
    if (x + wide > width) [x, y] = [20, y + 22];
    const drawn = `<g transform="translate(${x},${y})">${mark}<text x="14" y="4" ${FONT} font-size="12.5" fill="${ink}">${escape(text)}</text></g>`;
    x += wide;
    return drawn;
  });
  const all = y + 44;
  const texts = head.map((line, i) => `<text x="12" y="${48 + 18 * i}" ${FONT} font-size="13" fill="${soft}">${escape(line)}</text>`);
  return (
    `<svg xmlns="${NAMESPACE}" width="${width}" height="${all}" viewBox="0 0 ${width} ${all}" role="img" aria-label="${escape(title)}">` +
    `<title>${escape(title)}</title><rect width="100%" height="100%" fill="${token("surface")}"/>` +
    `<text x="12" y="27" ${FONT} font-size="18" font-weight="700" fill="${ink}">${escape(title)}</text>${texts.join("")}` +
    `<svg x="0" y="${top}" width="${width}" height="${height}">${inner}</svg>${marks.join("")}` +
    `<text x="12" y="${all - 12}" ${FONT} font-size="12" fill="${soft}">${escape(origin)}</text></svg>`
  );
}

const STYLE = `:root{color-scheme:light dark}body{font:16px/1.5 system-ui,sans-serif;max-width:960px;margin:0 auto;padding:24px 18px;color:#1d2329;background:#fff}
h1{font-size:26px;line-height:1.2}h2{font-size:18px;margin-top:32px}.lead{font-size:20px;font-weight:600}svg{max-width:100%;height:auto}
table{border-collapse:collapse}th,td{padding:5px 16px 5px 0;text-align:right;border-bottom:1px solid #dedcd3;font-weight:400}th:first-child{text-align:left}
pre{background:#f6f5f1;padding:14px;border-radius:8px;overflow:auto;font-size:13px}.warn{border-left:4px solid #c03f14;background:#fbe9e1;padding:8px 12px}footer{margin-top:36px;color:#5a626b;font-size:14px;overflow-wrap:anywhere}`;

// One page in one file, without scripts and without anything from elsewhere.
export function sharePage({ title, headline, warnings, notes, rows, pictures, toml, fingerprint }) {
  const cells = rows.map(([name, ...values]) => `<tr><th scope="row">${escape(name)}</th>${values.map((value) => `<td>${escape(value)}</td>`).join("")}</tr>`);
  return `<!doctype html>
<html lang="en"><head><meta charset="utf-8"><meta name="viewport" content="width=device-width, initial-scale=1">
<meta http-equiv="Content-Security-Policy" content="default-src 'none'; style-src 'unsafe-inline'">
<title>${escape(title)}</title><style>${STYLE}</style></head><body><main>
<h1>${escape(title)}</h1><p class="lead">${escape(headline)}</p>
${warnings.map((text) => `<p class="warn">${escape(text)}</p>`).join("\n")}
${notes.map((text) => `<p>${escape(text)}</p>`).join("\n")}
<table><thead><tr><td></td><th scope="col">before repair</th><th scope="col">as released</th></tr></thead><tbody>${cells.join("")}</tbody></table>
${pictures.map(([name, svg]) => `<h2>${escape(name)}</h2>\n${svg}`).join("\n")}
<h2>The scenario</h2><pre>${escape(toml)}</pre>
<footer>Made by dphmm studio. Fingerprint of what was opened: ${escape(fingerprint)}. The numbers are those that <code>dphmm check</code> prints for this scenario; no track of anybody and no answer about anybody is in this page.</footer>
</main></body></html>
`;
}
