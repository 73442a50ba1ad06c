// The page: one view, one answer and the view that it answers, and everything redrawn from them.

import { debounce, h } from "./elements.js";
import { ask, oneAtATime } from "./server.js";
import { Store, firstView, fromFragment, restore, toFragment, withEdges, withValues } from "./state.js";
import { StateMap, layout } from "./map.js";
import { Tools, TOOLS, choices } from "./tools.js";
import { Header } from "./header.js";
import { LayersPanel, guide } from "./layers.js";
import { BudgetPanel, NoisePanel } from "./settings.js";
import { Effects } from "./effects.js";
import { TimePanel } from "./time.js";
import { WalkPanel } from "./walk.js";
import { SavePanel } from "./save.js";
import { setUpWords } from "./words.js";
import { colourChoice, sceneOf, showLegend, tellState } from "./scene.js";
import { setUpTabs, showTab } from "./tabs.js";

const MOST_CLIQUE = 300;
const HORIZON = 10;
const find = (id) => document.getElementById(id);
const own = document.querySelector('meta[name="studio-own"]').content;
const given = await fromFragment(location.hash);
const store = new Store(restore(given ?? (own ? { world: { name: "own" } } : null)));
const map = new StateMap(find("map"));
const nowWorld = () => world;
let world = null;
// What the server said, and of which draft, step and world it said it.
let answer = null;
// The last complete answer before the edit that is shown, to compare with.
let earlier = null;
let hovered = null;
let added = null;
let preview = null;
let drawn = 0;
// What was done to other scenarios, so that looking elsewhere loses nothing.
const kept = new Map();

const key = (view = store.view) => ({ world: world?.world, draft: view.draft, step: view.step });
const isOf = (one, other) =>
  one.world === other.world && one.draft === other.draft && one.step === other.step;
const isFresh = () => answer !== null && isOf(answer.of, key());
const body = (of, more = {}) => ({ world: of.world, ...of.draft, step: of.step, ...more });

function complain(error) {
  const box = find("problem");
  box.hidden = false;
  box.textContent = error.message;
  clearTimeout(complain.timer);
  complain.timer = setTimeout(() => {
    box.hidden = true;
  }, 8000);
}

const say = (text) => {
  find("map-status").textContent = text;
};
const labels = () => ({ names: world.category_names, categories: world.categories });
const context = () => ({
  view: store.view,
  world,
  answer,
  labels: world && labels(),
  tools,
  walk,
  added,
  hovered,
  preview,
});

// The server keeps only a few examples; one that it forgot is opened again.
async function compute(path, content) {
  try {
    return await ask(path, content);
  } catch (error) {
    if (error.status !== 404) throw error;
    const again = await ask("/api/open", store.view.world);
    return ask(path, { ...content, world: again.world });
  }
}

async function link(a, b) {
  const { draft } = store.view;
  const pair = `${world.labels[a]}–${world.labels[b]}`;
  try {
    const { linked, own: drawnByHand } = await compute("/api/linked", {
      world: world.world,
      ...draft,
      states: [a, b],
    });
    if (drawnByHand) store.change({ draft: withEdges(draft, world, [], [[a, b]]) }, `Unlink ${pair}`);
    else if (linked) return say(`${pair} are linked by a rule of the policy; change the rule to part them.`);
    else store.change({ draft: withEdges(draft, world, [[a, b]]) }, `Link ${pair}`);
    say(`${drawnByHand ? "Unlinked" : "Linked"} ${pair}.`);
  } catch (error) {
    complain(error);
  }
  return undefined;
}

function set(values, label, more = {}) {
  store.change({ draft: withValues(store.view.draft, world, values), ...more }, label);
}

const tools = new Tools(map, {
  link,
  hover(state) {
    if (state === hovered || !answer) return;
    hovered = state;
    const card = find("hover-card");
    card.hidden = hovered === null;
    if (hovered !== null) card.textContent = tellState(hovered, context());
    redraw();
  },
  focus(state) {
    if (!answer) return;
    if (state !== null) say(tellState(state, context()));
    redraw();
  },
  pick(states) {
    if (!answer) return;
    if (states.length && store.view.tool === "link")
      say(`${world.labels[states[0]]} chosen; now choose the other place.`);
    redraw();
  },
  look(state) {
    say(tellState(state, context()));
    if (store.view.tab === "time") set({ start: world.labels[state] }, `Start at ${world.labels[state]}`, { step: 1 });
  },
  clique(states) {
    if (states.length < 2) return say("Draw around at least two places.");
    if (states.length > MOST_CLIQUE)
      return say(`${states.length} places are too many to link one by one; a rule does that better.`);
    const pairs = states.flatMap((a, i) => states.slice(i + 1).map((b) => [a, b]));
    store.change({ draft: withEdges(store.view.draft, world, pairs) }, `Link ${states.length} places`);
    return say(`${states.length} places must now look alike.`);
  },
});

const header = new Header(store, own, (next) => open(next));
const layers = new LayersPanel(find("panel-policy"), store, nowWorld);
const budget = new BudgetPanel(find("panel-budget"), store, nowWorld);
const noise = new NoisePanel(find("panel-noise"), store, nowWorld);
const time = new TimePanel(find("panel-time"), store, nowWorld);
const walk = new WalkPanel(find("panel-walk"), find("walk-results"), find("walk-bar"), store, () => runWalk());
const saver = new SavePanel(
  find("panel-save"),
  () => ({ view: store.view, world, map, walked: walk.walked, request: () => ({ world: world.world, ...store.view.draft }) }),
  (opened) => reopen(opened),
);
const effectsPanel = new Effects(find("effects"), {
  link,
  highlight(edges, outline) {
    added = edges;
    preview = edges && outline ? { outline, state: edges[0][0] } : null;
    redraw();
  },
  repair: (method) => set({ repair: method }, `Repair: ${method}`),
  state: (state) => askRepairs({ of: answer.of, state }),
});

const askEffects = oneAtATime(async (of) => {
  try {
    const effects = await compute("/api/effects", body(of));
    if (of.world !== world.world) return;
    answer = { of, effects, released: effects.released, repairs: null, expected: null, earlier };
    [added, preview] = [null, null];
    showAll();
    if (!isFresh()) return;
    if (!answer.released) askReleased(of);
    askRepairs({ of });
    askTimeline(of);
    askExpected(of);
  } catch (error) {
    complain(error);
    // What the server refused is taken back; a link may hold what its scenario does not allow.
    if (!isOf(of, key())) return;
    if (answer) store.go(-1);
    else if (Object.keys(of.draft.changes).length || of.draft.edges) store.put({ draft: firstView().draft });
  }
});

// Later answers about the same view join the first; about another view they are dropped.
const join = (path, read, fail, more = () => ({})) =>
  oneAtATime(async (asked) => {
    const of = asked.of ?? asked;
    if (!answer || !isOf(answer.of, of)) return;
    let part;
    try {
      part = read(await compute(path, body(of, more(asked))));
    } catch (error) {
      part = fail(error);
    }
    if (!answer || !isOf(answer.of, of)) return;
    answer = { ...answer, ...part };
    showAll();
  });

// While a slider moves only what follows it at once is asked for; the rest waits until it rests.
const pause = (usual) => () => (store.kind?.startsWith("slide") ? usual + 250 : usual);
const askReleased = debounce(
  join("/api/released", (released) => ({ released }), (error) => ({ problem: error.message })),
  pause(10),
);
const askRepairs = debounce(
  join(
    "/api/repairs",
    (repairs) => ({ repairs }),
    (error) => ({ repairs: { error: error.message } }),
    ({ state }) => (state === undefined ? {} : { state }),
  ),
  pause(20),
);
const askExpected = debounce(
  join("/api/expected", (expected) => ({ expected }), () => ({})),
  pause(700),
);
const askTimeline = debounce(
  oneAtATime(async (of) => {
    if (store.view.tab !== "time" || !isOf(of, key())) return;
    try {
      const horizon = Math.max(HORIZON, Math.min(60, of.step));
      const { steps } = await compute("/api/timeline", { world: of.world, ...of.draft, horizon });
      if (isOf(of, key())) time.showTimeline(steps, answer.effects.time);
    } catch (error) {
      complain(error);
    }
  }),
  pause(20),
);

async function runWalk() {
  const { view } = store;
  find("run-walk").disabled = true;
  try {
    const walked = await compute("/api/walk", { world: world.world, ...walk.request(view) });
    walk.showResult(walked, view, world, map.places);
    store.change({
      tab: "walk",
      colour: "posterior",
      walk: { ...store.view.walk, time: walked.path.length, shown: 0 },
    });
    say(walked.runs.map((run, i) => `${walked.runs.length > 1 ? `${"AB"[i]}: ` : ""}${run.answers} simulated answers.`).join(" "));
  } catch (error) {
    complain(error);
  } finally {
    find("run-walk").disabled = false;
  }
}

// Show another scenario; what was drawn on the last one belongs to it alone.
function enter(opened, chosen, keep) {
  if (world) kept.set(world.world, { ...store.keep(), pinned: store.view.pinned });
  world = opened;
  [answer, earlier, hovered] = [null, null, null];
  tools.chosen = [];
  tools.focus = null;
  walk.forget();
  const again = kept.get(world.world);
  store.recall(keep ? null : again);
  map.show(world, layout(world));
  const { draft, step, colour, walk: walked } = firstView();
  if (keep && store.view.zoom) map.zoomTo(store.view.zoom);
  const first = { draft: again?.draft ?? draft, step: again?.step ?? step, pinned: again?.pinned ?? null };
  const before = store.view;
  store.put(keep ? {} : { world: chosen, ...first, colour, walk: walked, zoom: null });
  // Where the view did not change by that, nobody has asked yet.
  if (store.view.draft === before.draft && store.view.step === before.step) askEffects(key());
}

async function open(chosen, from = null) {
  try {
    enter(await ask("/api/open", { ...chosen, ...(from ? { fingerprint: from.fingerprint ?? "" } : {}) }), chosen, Boolean(from));
  } catch (error) {
    complain(error);
    if (from) open(own ? { name: "own" } : { name: "paper" });
  }
}

// After saving, the file is what was seen, and nothing is left to undo.
function reopen(opened) {
  const { step, tab, tool, theme, colour } = store.view;
  enter(opened, { name: "own" }, false);
  store.put({ step, tab, tool, theme, colour: colour === "posterior" ? "category" : colour });
}

function redraw() {
  if (!answer || !world) return;
  const scene = sceneOf(context());
  map.set(scene);
  showLegend(find("legend"), scene, { ...context(), walking: store.view.tab === "walk" && walk.walked });
}

function showAll() {
  if (!answer || !world) return;
  const { view } = store;
  header.show(view, world);
  layers.show(view, world);
  budget.show(view, world, answer.effects);
  noise.show(view, world);
  effectsPanel.show(view, world, answer, labels());
  time.show(view, world, answer.effects);
  walk.show(view, world);
  walk.showTime(view);
  saver.show(view, world);
  colourChoice(find("colour"), view, walk.walked);
  choices(find("tools"), "tool", TOOLS, view.tool, (tool) => store.change({ tool }));
  choices(
    find("stages"),
    "stage",
    [
      ["before", ["Before", h("span", { className: "long" }, " repair")], "What the policy alone protects"],
      ["released", [h("span", { className: "long" }, "As "), "released"], "What answers really protect"],
    ],
    view.stage,
    (stage) => store.change({ stage }),
  );
  guide(layers.guide, view, world, {
    step: () => set({ start: "s1" }, "Start at s1, step twice", { step: 2 }),
    repair: () => set({ repair: "min_error" }, "Repair: least error"),
    walk: () => runWalk(),
  });
  announce(answer.released?.headline);
  find("headline-strip").textContent = answer.released ? `${answer.released.headline}.` : "…";
  showWaiting();
  redraw();
  if (!isFresh()) return;
  drawn += 1;
  document.documentElement.dataset.drawn = drawn;
  if (drawn === 1) performance.mark("studio-ready");
}

// Said once, when a slider has come to rest.
const announce = debounce((headline) => {
  if (headline && find("announced").textContent !== headline) find("announced").textContent = headline;
}, 900);

// Numbers of another view than the one on the controls are never shown as if they were its own.
function showWaiting() {
  const waiting = !isFresh();
  document.documentElement.classList.toggle("waiting", waiting);
  find("effects").setAttribute("aria-busy", String(waiting || !answer.released));
}

const keepLink = debounce(async () => {
  if (!world) return;
  const fragment = await toFragment(store.view, world.fingerprint);
  if (fragment.length < 30000) history.replaceState(null, "", fragment);
}, 500);

store.listen((view, before) => {
  if (!world) return;
  if (view.draft !== before.draft || view.step !== before.step) {
    // An edit begins: what it is compared with is the last complete answer.
    if (store.kind === null || store.edited) {
      earlier = answer?.released && isOf(answer.of, key(before)) ? answer.released : null;
      store.edited = false;
    }
    askEffects(key(view));
  }
  if (view.tool !== before.tool) {
    tools.choose(view.tool);
    say(TOOLS.find(([name]) => name === view.tool)[2]);
  }
  if (view.tab !== before.tab) {
    showTab(view.tab);
    if (answer) askTimeline(answer.of);
  }
  if (view.theme !== before.theme) header.showTheme(view);
  if (answer) showAll();
  keepLink();
});

find("colour").addEventListener("change", (event) => store.change({ colour: event.target.value }));
find("zoom-in").addEventListener("click", () => map.zoomBy(1.5));
find("zoom-out").addEventListener("click", () => map.zoomBy(1 / 1.5));
find("zoom-fit").addEventListener("click", () => map.fit());
find("save-button").addEventListener("click", () => store.change({ tab: "save" }));
map.onzoom = debounce(({ k, x, y }) => {
  store.view = Object.freeze({ ...store.view, zoom: k === 1 && !x && !y ? null : { k, x, y } });
  keepLink();
}, 300);
matchMedia("(prefers-color-scheme: dark)").addEventListener("change", () => {
  header.showTheme(store.view);
  showAll();
});

setUpWords();
setUpTabs((tab) => store.change({ tab }));
showTab(store.view.tab);
tools.choose(store.view.tool);
header.showTheme(store.view);
say(TOOLS.find(([name]) => name === store.view.tool)[2]);
await open(store.view.world, given);
addEventListener("hashchange", async () => {
  if (await fromFragment(location.hash)) location.reload();
});
