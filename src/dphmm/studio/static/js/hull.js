// The hull in its own panel, with the body of the noise around it and, on demand, a repair's hull.

import { widthOf } from "./elements.js";

const d3 = globalThis.d3;

export function drawHullPanel(svg, hull, preview, axes) {
  const width = widthOf(svg);
  const height = 230;
  const root = d3.select(svg).attr("viewBox", `0 0 ${width} ${height}`);
  root.selectAll("*").remove();
  if (!hull || !hull.rank) {
    root
      .append("text")
      .attr("x", width / 2)
      .attr("y", height / 2)
      .attr("text-anchor", "middle")
      .attr("class", "empty-text")
      .text("No edges, so there is nothing to hide and no hull.");
    return;
  }
  const everything = [...hull.outline, ...hull.body, ...(preview ?? [])];
  const reach = [
    d3.max(everything, ([x]) => Math.abs(x)) || 1,
    d3.max(everything, ([, y]) => Math.abs(y)) || 0,
  ];
  const unit = Math.min((width / 2 - 26) / reach[0], (height / 2 - 20) / (reach[1] || 1e-9));
  const x = (value) => width / 2 + value * unit;
  const y = (value) => height / 2 - value * unit;
  const path = (points) => `M${points.map(([a, b]) => `${x(a)},${y(b)}`).join("L")}Z`;

  const ticks = d3.ticks(-width / 2 / unit, width / 2 / unit, 8);
  const grid = root.append("g").attr("class", "grid");
  for (const tick of ticks) {
    grid.append("path").attr("d", `M${x(tick)},0V${height}`);
    if (Math.abs(y(tick) - height / 2) < height / 2) grid.append("path").attr("d", `M0,${y(tick)}H${width}`);
  }
  root
    .append("path")
    .attr("class", "axis")
    .attr("d", `M0,${y(0)}H${width}M${x(0)},0V${height}`);
  const names = root.append("g").attr("class", "axis-text");
  for (const tick of ticks
    .filter((value) => value > 0 && x(value) < width - 60)
    .filter((_, i) => i % 2 === 0)) {
    names
      .append("text")
      .attr("x", x(tick))
      .attr("y", y(0) + 12)
      .attr("text-anchor", "middle")
      .text(tick);
  }
  names
    .append("text")
    .attr("x", width - 4)
    .attr("y", y(0) + 12)
    .attr("text-anchor", "end")
    .text(`Δ ${axes[0] ?? ""}`);
  if (hull.dimension > 1)
    names
      .append("text")
      .attr("x", x(0) + 5)
      .attr("y", 11)
      .text(`Δ ${axes[1] ?? ""}`);

  root.append("path").attr("class", "ball").attr("d", path(hull.body));
  if (preview) root.append("path").attr("class", "hull-preview").attr("d", path(preview));
  root
    .append("path")
    .attr("class", hull.rank === 1 ? "hull-shape flat" : "hull-shape")
    .attr("d", path(hull.outline));
  root
    .append("g")
    .selectAll("circle")
    .data(hull.outline)
    .join("circle")
    .attr("class", "corner")
    .attr("r", 2.6)
    .attr("cx", ([a]) => x(a))
    .attr("cy", ([, b]) => y(b));
}
