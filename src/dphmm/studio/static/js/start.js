// The page without a scenario: what this is about, files to open, examples, and what to do with
// data that is not a scenario yet.

import { h, fill } from "./elements.js";
import { ask } from "./server.js";

const EXAMPLES = [
  ["city", "A city", "a river with bridges, made-up people on their way"],
  ["paper", "The paper's example", "six places, small enough to follow by hand"],
  ["clinic", "A clinic", "rooms instead of a map: how long a visit takes"],
  ["grid", "A plain grid", "nobody in particular, up to 10,000 cells"],
];

// A file's name as a shell takes it for nothing else.
function inShell(name) {
  const path = name.startsWith("-") ? `./${name}` : name;
  return /[^\w./-]/.test(path) ? `'${path.replaceAll("'", "'\\''")}'` : path;
}

// What to type for data that is not a scenario yet.
export function commandFor(name) {
  const stem = name.replace(/\.[^.]*$/, "").replace(/[^\w-]+/g, "-").replace(/^-+/, "") || "town";
  return [
    `dphmm import ${inShell(name)} --around LATITUDE,LONGITUDE --kilometres 10 -o ${stem}`,
    `dphmm learn ${stem}/trips.csv --scenario ${stem}/scenario.toml`,
    `dphmm studio ${stem}`,
  ].join("\n");
}

export class StartPage {
  // act: open(world), home(), tour(), turn(): changes whenever a scenario is asked for
  constructor(holder, act) {
    Object.assign(this, { holder, act });
    this.files = h("div", { id: "start-files" });
    this.said = h("div", { id: "start-said", role: "status" });
    this.picker = h("input", { type: "file", id: "start-pick", accept: ".toml,.csv,.geojson,.json,.zip,.gpx,.parquet", className: "hidden", tabIndex: -1, "aria-label": "A file", onchange: () => this.take(this.picker.files) });
    this.drop = h(
      "div",
      { className: "drop", id: "start-drop" },
      h("p", {}, "Drop a scenario (.toml) here, or tracks (.csv, .geojson) to see how they become one."),
      h("button", { type: "button", id: "start-choose", onclick: () => this.picker.click() }, "Choose a file…"),
      this.picker,
    );
    // Anywhere on the page: the browser would show the file in the page's place.
    for (const name of ["dragenter", "dragover", "dragleave", "drop"])
      document.addEventListener(name, (event) => {
        if (!event.dataTransfer?.types.includes("Files")) return;
        event.preventDefault();
        this.drop.classList.toggle("over", name === "dragenter" || name === "dragover");
        if (name !== "drop") return;
        if (holder.hidden) act.home();
        this.take(event.dataTransfer.files);
      });
    const card = (name, title, about) =>
      h("li", {}, h("button", { type: "button", className: "start-card", id: `start-${name}`, onclick: () => act.open({ name }) }, h("strong", {}, title), h("span", {}, about)));
    fill(
      holder,
      h(
        "div",
        { className: "start-inner" },
        h(
          "section",
          { className: "start-intro", "aria-labelledby": "start-title" },
          h("h2", { id: "start-title" }, "Say where people are, and keep where they are private"),
          h(
            "ol",
            { className: "start-steps" },
            h("li", {}, h("strong", {}, "People move between places. "), "How they usually move is public: a model, learned once."),
            h("li", {}, h("strong", {}, "You say which places must look alike. "), "A home must not be told from the house next door; a clinic from any other."),
            h("li", {}, h("strong", {}, "Every answer is blurred just enough. "), "The page says how far off it is, who is still exposed, and what a day costs."),
          ),
          h("button", { type: "button", className: "primary", id: "start-tour", onclick: () => act.tour() }, "Take the tour: five minutes in a city"),
        ),
        h(
          "section",
          { "aria-labelledby": "start-own" },
          h("h2", { id: "start-own" }, "Your scenarios"),
          this.files,
          this.drop,
          this.said,
        ),
        h("section", { "aria-labelledby": "start-examples" }, h("h2", { id: "start-examples" }, "Examples to play with"), h("ul", { className: "start-list" }, EXAMPLES.map((one) => card(...one)))),
      ),
    );
  }

  async show() {
    fill(this.said);
    let found;
    try {
      found = await ask("/api/start", {});
    } catch (error) {
      fill(this.files, h("p", { className: "note" }, error.message));
      return;
    }
    const { folder, scenarios, recent } = found;
    const list = (title, entries) =>
      entries.length
        ? [
            h("h3", {}, title),
            h(
              "ul",
              { className: "start-list" },
              entries.map(({ file, name, where }) =>
                h("li", {}, h("button", { type: "button", className: "start-card", onclick: () => this.act.open({ name: "file", file }) }, h("strong", {}, name), h("span", {}, where))),
              ),
            ),
          ]
        : [];
    const nothing = scenarios.length + recent.length ? [] : [h("p", { className: "note" }, folder ? `There is no scenario in ${folder} yet. Make one from tracks with ` : "Make a scenario from tracks with ", h("code", {}, "dphmm import"), " and ", h("code", {}, "dphmm learn"), "; drop them below to see how.")];
    fill(this.files, list(folder ? `In ${folder}` : "", scenarios), list("Opened lately", recent), nothing);
  }

  // Of several files the scenario is what counts.
  async take(files) {
    const file = [...files].find(({ name }) => /\.toml$/i.test(name)) ?? files[0];
    if (!file) return;
    const turn = this.act.turn();
    this.picker.value = "";
    if (!/\.toml$/i.test(file.name)) {
      const command = commandFor(file.name);
      fill(this.said, h("p", {}, `${file.name} holds data, not a scenario. On the command line, where the file is, this lays a grid around a point that you choose, learns how people move on it, and opens what it made:`), h("pre", { tabIndex: 0, role: "region", "aria-label": "Command" }, command), h("p", { className: "note" }, "Nothing of the file was sent anywhere or read here."));
      return;
    }
    try {
      const { file: number } = await ask("/api/drop", { name: file.name, text: await file.text() });
      if (turn === this.act.turn()) this.act.open({ name: "file", file: number });
    } catch (error) {
      if (turn === this.act.turn()) fill(this.said, h("p", { className: "warning" }, error.message));
    }
  }
}
