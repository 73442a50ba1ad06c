// Small plots over time: lines for errors, degrees and the ledger; bars for possible sets.

import { length, short, widthOf } from "./elements.js";

const d3 = globalThis.d3;

// How far from the left a plot begins, so that the longest number on its axis has room: 12 px text.
export const roomFor = (texts, least) => Math.max(least, 8 + 8 * Math.max(0, ...texts.map(({ length: letters }) => letters)));

// series: [{ name, values, kind }]; kind is a CSS class such as "a" or "b faint".
export function lines(svg, series, { time = null, limit = null, label = "", least = null, unit = "" } = {}) {
  const [width, height] = [widthOf(svg), 128];
  const root = d3.select(svg).attr("viewBox", `0 0 ${width} ${height}`);
  root.selectAll("*").remove();
  const count = d3.max(series, ({ values }) => values.length) || 0;
  const finite = series.flatMap(({ values }) => values).filter(Number.isFinite);
  const most = Math.max(d3.max(finite) ?? 1, limit ?? 0, least ?? 0) || 1;
  const lowest = Math.min(0, d3.min(finite) ?? 0);
  const y = d3.scaleLinear([lowest * 1.06, most * 1.06], [height - 20, 12]);
  const write = (tick) => (unit ? length(tick, unit) : short(tick));
  const margin = { left: roomFor(y.ticks(3).map(write), 52), right: 8, top: 12, bottom: 20 };
  const x = d3.scaleLinear([1, Math.max(count, 2)], [margin.left, width - margin.right]);
  const grid = root.append("g").attr("class", "grid");
  for (const tick of y.ticks(3)) {
    grid.append("path").attr("d", `M${margin.left},${y(tick)}H${width - margin.right}`);
    root
      .append("text")
      .attr("class", "axis-text")
      .attr("x", margin.left - 5)
      .attr("y", y(tick) + 3.5)
      .attr("text-anchor", "end")
      .text(write(tick));
  }
  for (const tick of x.ticks(6).filter(Number.isInteger)) {
    root
      .append("text")
      .attr("class", "axis-text")
      .attr("x", x(tick))
      .attr("y", height - 6)
      .attr("text-anchor", "middle")
      .text(tick);
  }
  if (limit !== null) {
    root
      .append("path")
      .attr("class", "limit")
      .attr("d", `M${margin.left},${y(limit)}H${width - margin.right}`);
    root
      .append("text")
      .attr("class", "limit-text")
      .attr("x", margin.left + 3)
      .attr("y", y(limit) + 12)
      .text(`limit ${short(limit)}`);
  }
  const line = d3
    .line()
    .x((_, i) => x(i + 1))
    .y((value) => y(value))
    .defined(Number.isFinite);
  for (const { values, kind, step } of series) {
    if (kind.includes("dots")) {
      values.forEach((value, i) => {
        if (Number.isFinite(value))
          root.append("circle").attr("class", `dot ${kind}`).attr("r", 2.2).attr("cx", x(i + 1)).attr("cy", y(value));
      });
      continue;
    }
    root
      .append("path")
      .attr("class", `line ${kind}`)
      .attr("d", (step ? line.curve(d3.curveStepAfter) : line.curve(d3.curveLinear))(values));
  }
  if (time !== null && count) {
    root
      .append("path")
      .attr("class", "now-line")
      .attr("d", `M${x(time)},${margin.top}V${height - margin.bottom}`);
    for (const { values, kind } of series) {
      const value = values[time - 1];
      if (Number.isFinite(value))
        root
          .append("circle")
          .attr("class", `dot ${kind}`)
          .attr("r", 3)
          .attr("cx", x(time))
          .attr("cy", y(value));
    }
  }
  svg.setAttribute("role", "img");
  svg.setAttribute(
    "aria-label",
    `${label}: ${series
      .map(({ name, values }) => `${name} ends at ${short(values.findLast(Number.isFinite) ?? 0)}`)
      .join("; ")}.`,
  );
}

export function bars(svg, steps, current, choose) {
  const [width, height] = [widthOf(svg), 130];
  const root = d3.select(svg).attr("viewBox", `0 0 ${width} ${height}`);
  root.selectAll("*").remove();
  const y = d3.scaleLinear([0, d3.max(steps, ({ possible }) => possible)], [height - 20, 14]);
  const ticks = y.ticks(3).filter(Number.isInteger);
  const left = roomFor(ticks.map(short), 30);
  const x = d3
    .scaleBand(
      steps.map(({ time }) => time),
      [left, width - 4],
    )
    .padding(0.18);
  for (const tick of ticks) {
    root
      .append("path")
      .attr("class", "grid-line")
      .attr("d", `M${left},${y(tick)}H${width - 4}`);
    root
      .append("text")
      .attr("class", "axis-text")
      .attr("x", left - 4)
      .attr("y", y(tick) + 3.5)
      .attr("text-anchor", "end")
      .text(short(tick));
  }
  const group = root
    .selectAll("g.step")
    .data(steps)
    .join("g")
    .attr("class", "step")
    .classed("now", ({ time }) => time === current)
    .on("click", (_, { time }) => choose(time));
  group
    .append("rect")
    .attr("class", "hit")
    .attr("x", ({ time }) => x(time))
    .attr("y", 0)
    .attr("width", x.bandwidth())
    .attr("height", height);
  group
    .append("rect")
    .attr("class", "possible-bar")
    .attr("x", ({ time }) => x(time))
    .attr("width", x.bandwidth())
    .attr("y", ({ possible }) => y(possible))
    .attr("height", ({ possible }) => y(0) - y(possible));
  group
    .append("rect")
    .attr("class", "exposed-bar")
    .attr("x", ({ time }) => x(time))
    .attr("width", x.bandwidth())
    .attr("y", ({ exposed }) => y(exposed))
    .attr("height", ({ exposed }) => y(0) - y(exposed));
  group
    .append("text")
    .attr("class", "axis-text")
    .attr("x", ({ time }) => x(time) + x.bandwidth() / 2)
    .attr("y", height - 6)
    .attr("text-anchor", "middle")
    // As many as have room beside each other.
    .text(({ time }, i) => (i % Math.ceil(26 / x.step()) ? "" : time));
}
