// What the tools on the map do to the view.

import { labelsOf, tellState } from "./scene.js";

export function toolActions({ store, say, link, redraw, now, hover }) {
  return {
    hover,
    link,
    focus(state) {
      if (!now().effects) return;
      if (state !== null) say(tellState(state, now()));
      redraw();
    },
    pick(states) {
      const { effects, world } = now();
      if (!effects) return;
      if (states.length && store.view.tool === "link")
        say(`${world.labels[states[0]]} chosen; now choose the other state.`);
      redraw();
    },
    look(state) {
      say(tellState(state, now()));
      if (store.view.tab === "time") store.change({ moment: { start: state, steps: 0 } }, "start");
      if (store.view.tab === "walk") store.walk({ start: state });
    },
    clique(states) {
      if (states.length < 2) return say("A clique needs at least two states inside the lasso.");
      store.policy({ cliques: [...store.view.policy.cliques, states] }, "clique");
      return say(`${states.length} states must now look alike.`);
    },
    painting(states) {
      say(`Painting ${states.length} states…`);
    },
    paint(states) {
      const { names, categories } = labelsOf(store.view, now().world);
      const fresh = store.view.brush >= names.length;
      const name = fresh ? `category ${names.length + 1}` : names[store.view.brush];
      const painted = categories.map((number) => names[number]);
      for (const state of states) painted[state] = name;
      store.policy({ base: "categories", categories: painted }, "paint");
      say(`Painted ${states.length} as ${name}.`);
    },
    possible(state) {
      const { effects, world } = now();
      const possible = new Set(effects.possible ?? Array.from({ length: world.n_states }, (_, i) => i));
      if (possible.has(state)) possible.delete(state);
      else possible.add(state);
      if (!possible.size) return say("At least one state must stay possible.");
      store.change({ moment: { states: [...possible].sort((a, b) => a - b) } }, "possible");
      return say(`${world.labels[state]} is now ${possible.has(state) ? "possible" : "impossible"}.`);
    },
  };
}
