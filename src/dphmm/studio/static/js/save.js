// Saving: the difference first, then the file it was opened from, or another; and what can be
// taken away without it.

import { h, fill, save } from "./elements.js";
import { askForFile } from "./server.js";
import { toFragment } from "./state.js";
import { mapSvg, plotSvg, plotsSvg, toPng } from "./pictures.js";
import { framed, legendOf, sharePage } from "./share.js";

export class SavePanel {
  // now(): { view, world, map, answer, fresh, walked, request }; compute: asks the server; saved:
  // called with what it opened.
  constructor(holder, now, compute, saved) {
    Object.assign(this, { now, compute, saved });
    const button = (id, label, action, properties = {}) =>
      h("button", { type: "button", id, ...properties, onclick: () => this.try(action) }, label);
    this.said = h("p", { className: "note", role: "status", id: "save-said" });
    this.lines = h("pre", { id: "difference", tabIndex: 0, role: "region", "aria-label": "Difference to the file" });
    this.save = button("save-file", "Save", () => this.write(null), { className: "primary" });
    this.name = h("input", { type: "text", id: "save-name", placeholder: "other.toml", autocomplete: "off", "aria-label": "Name of a new file" });
    this.saveAs = button("save-as", "Save as", () => this.write(this.name.value.trim()));
    this.where = h("p", {});
    this.fileRow = h("div", { className: "row" }, this.save, this.name, this.saveAs);
    this.link = h("input", { type: "text", readOnly: true, id: "link", "aria-label": "Link to this view", hidden: true });
    this.walkRow = h(
      "div",
      { className: "row" },
      button("download-csv", "Answers (CSV)", () => this.csv()),
      button("download-geojson", "GeoJSON", () => this.geojson()),
      button("download-plots", "Plots (SVG)", () => this.plots()),
    );
    fill(
      holder,
      h("h2", {}, "Save"),
      this.where,
      this.lines,
      this.fileRow,
      this.said,
      h("h3", {}, "Take away"),
      h(
        "div",
        { className: "row" },
        button("download-scenario", "Scenario (zip)", () => this.zip()),
        button("download-toml", "TOML", () => this.toml()),
        button("download-link", "Copy a link", () => this.copy()),
      ),
      this.link,
      h(
        "div",
        { className: "row" },
        button("download-svg", "Map (SVG)", () => this.seen(() => this.svg())),
        button("download-png", "Map (PNG)", () => this.seen(() => this.png())),
        button("download-hull", "Hull (SVG)", () => this.seen(() => this.hull())),
        button("download-page", "Page to share (HTML)", () => this.seen(() => this.page())),
      ),
      h("h3", {}, "The simulated answers"),
      this.walkRow,
    );
  }

  async show(view, world) {
    const { walked } = this.now();
    for (const one of this.walkRow.children) one.disabled = !walked;
    document.getElementById("download-geojson").disabled = !walked?.runs[0].degrees;
    this.fileRow.hidden = !world.file;
    this.where.textContent = world.file
      ? `What saving changes in ${world.file}, and nothing else:`
      : "This is an example without a file. Take it away as a zip and open that with dphmm studio.";
    if (view.tab !== "save" || (this.shown === view.draft && this.of === world.world)) return;
    Object.assign(this, { shown: view.draft, of: world.world });
    const isOld = () => this.shown !== view.draft || this.of !== world.world;
    // What would be saved is seen before it can be.
    this.save.disabled = true;
    fill(this.lines, "Working out what changes…");
    try {
      const { lines } = await this.compute("/api/difference", this.now().request());
      if (isOld()) return;
      const kind = (line) => (line.startsWith("+") ? "ins" : line.startsWith("-") ? "del" : "span");
      fill(this.lines, lines.length ? lines.map((line) => h(kind(line), {}, `${line}\n`)) : "Nothing was changed.");
      this.save.disabled = !lines.length;
    } catch (error) {
      if (isOld()) return;
      this.shown = null;
      fill(this.lines, error.message);
    }
  }

  async try(action) {
    try {
      this.said.textContent = await action();
    } catch (error) {
      this.said.textContent = `That did not work: ${error.message}`;
    }
  }

  async write(name) {
    if (name === "") return "Give the new file a name, such as other.toml.";
    if (this.writing) return "";  // pressed twice
    const { world, view } = this.now();
    this.writing = true;
    try {
      const opened = await this.compute("/api/save", { ...this.now().request(), name });
      this.shown = null;
      // Who looks at another scenario meanwhile stays there.
      if (this.now().world === world) this.saved(opened, view.draft);
      return `Saved ${opened.file}.`;
    } finally {
      this.writing = false;
    }
  }

  file(path) {
    return this.compute(path, this.now().request(), undefined, askForFile);
  }

  async zip() {
    save("scenario.zip", await this.file("/api/scenario"));
    return "Saved scenario.zip.";
  }

  async toml() {
    const { world } = this.now();
    save(world.file ?? "scenario.toml", await this.file("/api/toml"));
    return "Saved the TOML file; the files that it names are in the zip.";
  }

  // What is taken away has the numbers of the scenario that goes with it.
  seen(action) {
    return this.now().fresh ? action() : "The last edit is still being worked out; try again in a moment.";
  }

  // The map as it is seen, with what somebody needs who sees nothing but the picture.
  picture() {
    const { map, world, answer } = this.now();
    const lines = [answer.released ? `${answer.released.headline}.` : "", `${world.about}${world.unit ? ` · lengths in ${world.unit}` : ""}`];
    return framed(mapSvg(map), map.size, {
      title: world.title,
      lines: lines.filter(Boolean),
      legend: legendOf(map.scene, world.category_names, !map.svg.select(".away").empty()),
      origin: this.origin(),
    });
  }

  // What was opened and whether it was edited since: enough to tell two pictures apart.
  origin() {
    const { view, world, walked, answer } = this.now();
    const step = view.tab === "walk" && walked ? `simulated, step ${Math.min(view.walk.time, walked.path.length)} of ${walked.path.length}` : `step ${answer.effects.time}`;
    const edited = Object.keys(view.draft.changes).length || view.draft.edges ? ", with unsaved edits" : "";
    return `dphmm studio · ${world.file ?? "example"} · fingerprint ${world.fingerprint.slice(0, 16)}${edited} · ${step}`;
  }

  async page() {
    const { world, answer } = this.now();
    const { released, effects, expected } = answer;
    if (!released) return "The repair is still being worked out; try again in a moment.";
    const read = (id) => [`before-${id}`, `released-${id}`].map((name) => document.getElementById(name).textContent);
    const names = { exposed: "exposed places", least: "hides among at least", error: "an answer is off by", links: "links" };
    const plot = document.getElementById("curve-plot");
    const page = sharePage({
      title: world.title,
      headline: `${released.headline}.`,
      warnings: released.warnings,
      notes: [effects.guarantee, ...(expected?.mean_error.smoothed ? [document.getElementById("expected")?.textContent ?? ""] : [])].filter(Boolean),
      rows: Object.entries(names).map(([id, name]) => [name, ...read(id)]),
      pictures: [["The map", this.picture()], ...(plot.checkVisibility() && plot.querySelector(".point") ? [[`Trade-off: ${document.getElementById("curve-tell").textContent}`, plotSvg(plot)]] : [])],
      toml: await (await this.file("/api/toml")).text(),
      fingerprint: world.fingerprint,
    });
    save("scenario.html", page, "text/html");
    return "Saved scenario.html: one page with the numbers, the map and the scenario.";
  }

  svg() {
    save("map.svg", this.picture(), "image/svg+xml");
    return "Saved map.svg.";
  }

  async png() {
    save("map.png", await toPng(this.picture(), 2));
    return "Saved map.png.";
  }

  hull() {
    save("hull.svg", plotSvg(document.getElementById("hull-plot")), "image/svg+xml");
    return "Saved hull.svg.";
  }

  plots() {
    const parts = [
      ["Off by", "error"],
      ["Spent", "ledger"],
    ];
    save("plots.svg", plotsSvg(parts.map(([title, name]) => [title, document.getElementById(`${name}-plot`)])), "image/svg+xml");
    return "Saved plots.svg.";
  }

  csv() {
    const { walked, world } = this.now();
    const axes = world.axes.length ? world.axes : ["answer"];
    const quoted = (text) => `"${String(text).replaceAll('"', '""')}"`;
    const names = ["", "estimate ", "lagged ", "smoothed "].flatMap((kind) => axes.map((axis) => `${kind}${axis}`));
    const head = ["run", "time", "epsilon", "spent", ...names, "simulated"].map(quoted);
    const rows = walked.runs.flatMap((run, i) =>
      run.steps.map((step, t) => [
        "AB"[i],
        step.time,
        run.epsilon,
        step.spent,
        ...(step.answer ?? axes.map(() => "")),
        ...step.estimate,
        ...run.lagged[t],
        ...run.smoothed[t],
        "yes",
      ]),
    );
    save("releases.csv", `${[head, ...rows].map((row) => row.join(",")).join("\n")}\n`, "text/csv");
    return "Saved releases.csv.";
  }

  geojson() {
    const features = this.now().walked.runs.flatMap((run, i) =>
      run.steps
        .filter(({ answer }) => answer)
        .map((step, t) => ({
          type: "Feature",
          geometry: { type: "Point", coordinates: run.degrees[t] },
          properties: { run: "AB"[i], time: step.time, epsilon: run.epsilon, simulated: true },
        })),
    );
    save("releases.geojson", JSON.stringify({ type: "FeatureCollection", features }), "application/geo+json");
    return "Saved releases.geojson.";
  }

  async copy() {
    const { view, world } = this.now();
    const address = new URL(location.href);
    address.hash = await toFragment(view, world.fingerprint);
    this.link.hidden = false;
    this.link.value = address.href;
    this.link.select();
    history.replaceState(null, "", address.hash);
    try {
      await navigator.clipboard.writeText(address.href);
      return "Copied the link. It opens on this scenario only.";
    } catch {
      return "Here is the link; the browser did not let it be copied by itself.";
    }
  }
}
