// The panel to take away what is shown: the scenario, pictures, releases and a link.

import { h, fill, save } from "./elements.js";
import { askForFile } from "./server.js";
import { toFragment } from "./view.js";
import { mapSvg, plotSvg, plotsSvg, toPng } from "./pictures.js";

export class DownloadsPanel {
  // now: a function that gives { view, world, map, walked, request }
  constructor(holder, now) {
    this.now = now;
    this.said = h("p", { className: "note", role: "status", id: "download-said" });
    const button = (id, label, action, properties = {}) =>
      h("button", { type: "button", id, ...properties, onclick: () => this.try(action) }, label);
    this.link = h("input", {
      type: "text",
      readOnly: true,
      id: "link",
      "aria-label": "Link to this view",
      hidden: true,
    });
    this.walkButtons = h(
      "div",
      { className: "row" },
      button("download-csv", "CSV", () => this.csv()),
      button("download-geojson", "GeoJSON", () => this.geojson()),
      button("download-plots", "Plots (SVG)", () => this.plots()),
      button("download-plots-png", "Plots (PNG)", () => this.plotsPng()),
    );
    this.walkNote = h("p", { className: "note" });
    fill(
      holder,
      h("h2", {}, "Take it with you"),
      h("h3", {}, "The scenario"),
      h(
        "p",
        { className: "note" },
        "What you drew as files for the command line: try ",
        h("code", {}, "dphmm check scenario.toml"),
        ".",
      ),
      h(
        "div",
        { className: "row" },
        button("download-scenario", "Scenario (zip)", () => this.scenario()),
        button("download-toml", "Only the TOML", () => this.toml()),
      ),
      h("h3", {}, "The pictures"),
      h(
        "div",
        { className: "row" },
        button("download-svg", "Map (SVG)", () => this.svg()),
        button("download-png", "Map (PNG)", () => this.png()),
        button("download-hull", "Hull (SVG)", () => this.hull()),
      ),
      h("h3", {}, "The simulated releases"),
      this.walkButtons,
      this.walkNote,
      h("h3", {}, "A link to this view"),
      h("p", { className: "note" }, "Everything is in the part after #, which a browser keeps to itself."),
      h(
        "div",
        { className: "row" },
        button("download-link", "Copy the link", () => this.copy()),
      ),
      this.link,
      this.said,
    );
  }

  show() {
    const { walked, world } = this.now();
    for (const button of this.walkButtons.children) button.disabled = !walked;
    const nowhere = walked && !walked.runs[0].degrees;
    document.getElementById("download-geojson").disabled = !walked || nowhere;
    this.walkNote.textContent = !walked
      ? "Run a walk first; then its releases can be saved here."
      : nowhere
        ? `${world.title} has no latitude and longitude, so there is no GeoJSON.`
        : "";
  }

  async try(action) {
    try {
      this.said.textContent = await action();
    } catch (error) {
      this.said.textContent = `That did not work: ${error.message}`;
    }
  }

  async scenario() {
    save("scenario.zip", await askForFile("/api/scenario", this.now().request()));
    return "Saved scenario.zip.";
  }

  async toml() {
    save("scenario.toml", await askForFile("/api/toml", this.now().request()));
    return "Saved scenario.toml; it names states.csv and model.npz, which are in the zip.";
  }

  svg() {
    save("map.svg", mapSvg(this.now().map), "image/svg+xml");
    return "Saved map.svg.";
  }

  async png() {
    save("map.png", await toPng(mapSvg(this.now().map), 2));
    return "Saved map.png.";
  }

  hull() {
    save("hull.svg", plotSvg(document.getElementById("hull-plot")), "image/svg+xml");
    return "Saved hull.svg.";
  }

  allPlots() {
    return plotsSvg(
      [
        ["Error", "error"],
        ["Degree of protection", "degree"],
        ["Spent", "ledger"],
      ].map(([title, name]) => [title, document.getElementById(`${name}-plot`)]),
    );
  }

  plots() {
    save("plots.svg", this.allPlots(), "image/svg+xml");
    return "Saved plots.svg.";
  }

  async plotsPng() {
    save("plots.png", await toPng(this.allPlots(), 2));
    return "Saved plots.png.";
  }

  csv() {
    const { walked, world } = this.now();
    const axes = world.axes.length ? world.axes : ["answer"];
    const quoted = (text) => `"${String(text).replaceAll('"', '""')}"`;
    const head = [
      "run",
      "time",
      "epsilon",
      "spent",
      ...axes,
      ...axes.map((axis) => `estimate ${axis}`),
      ...axes.map((axis) => `smoothed ${axis}`),
      "simulated",
    ];
    const rows = walked.runs.flatMap((run, i) =>
      run.steps.map((step, t) => [
        "AB"[i],
        step.time,
        run.epsilon,
        step.spent,
        ...step.answer,
        ...step.estimate,
        ...run.smoothed[t],
        "yes",
      ]),
    );
    save(
      "releases.csv",
      [head.map(quoted), ...rows].map((row) => row.join(",")).join("\n") + "\n",
      "text/csv",
    );
    return "Saved releases.csv.";
  }

  geojson() {
    const { walked } = this.now();
    const features = walked.runs.flatMap((run, i) =>
      run.steps.map((step, t) => ({
        type: "Feature",
        geometry: { type: "Point", coordinates: run.degrees[t] },
        properties: {
          run: "AB"[i],
          time: step.time,
          epsilon: run.epsilon,
          smoothed: run.smoothed_degrees[t],
          simulated: true,
        },
      })),
    );
    save("releases.geojson", JSON.stringify({ type: "FeatureCollection", features }), "application/geo+json");
    return "Saved releases.geojson.";
  }

  async copy() {
    const address = new URL(location.href);
    address.hash = await toFragment(this.now().view);
    this.link.hidden = false;
    this.link.value = address.href;
    this.link.select();
    history.replaceState(null, "", address.hash);
    try {
      await navigator.clipboard.writeText(address.href);
      return "Copied the link.";
    } catch {
      return "Here is the link; the browser did not let it be copied by itself.";
    }
  }
}
