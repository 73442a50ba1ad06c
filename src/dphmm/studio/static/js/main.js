// The page: one view, one answer and the view that it answers, and everything redrawn from them.

import { Address, exampleIn, takeLeft } from "./address.js";
import { debounce, h } from "./elements.js";
import { Answers } from "./answers.js";
import { Curve } from "./curve.js";
import { ask } from "./server.js";
import { Store, edgesOf, firstView, fromFragment, pairKey, rebase, restore, withEdges, withValues } from "./state.js";
import { layout } from "./layout.js";
import { StateMap } from "./map.js";
import { Tools, TOOLS, choices } from "./tools.js";
import { Header } from "./header.js";
import { LayersPanel, guide } from "./layers.js";
import { BudgetPanel, NoisePanel } from "./settings.js";
import { Effects } from "./effects.js";
import { TimePanel } from "./time.js";
import { WalkPanel } from "./walk.js";
import { SavePanel } from "./save.js";
import { Compare } from "./compare.js";
import { LivePanel } from "./live.js";
import { StartPage } from "./start.js";
import { complain, endComplaint } from "./problem.js";
import { Tour } from "./tour.js";
import { setUpWords } from "./words.js";
import { colourChoice, sceneOf, showLegend, tellState } from "./scene.js";
import { setUpTabs, showTab } from "./tabs.js";

const MOST_CLIQUE = 300;
const find = (id) => document.getElementById(id);
const own = document.querySelector('meta[name="studio-own"]').content;
const given = takeLeft() ?? (await fromFragment(location.hash));
const store = new Store(restore(given ?? (own ? { world: { name: "own" } } : null)));
const map = new StateMap(find("map"));
let world = null;
const nowWorld = () => world;
const answers = new Answers(store, {
  world: nowWorld,
  show(anew) {
    if (anew) [added, preview] = [null, null];
    if (anew) endComplaint();
    showAll();
  },
  timeline: (steps, of) => time.showTimeline(steps, answers.now.effects.time, of),
  // What the server refused is taken back; a link may hold what its scenario does not allow. Where
  // it said nothing of the edit itself, that stays, and can be asked about again.
  refused(error, of) {
    const silent = error.status === undefined ? error.cause?.name !== "AbortError" : ![400, 413].includes(error.status);
    complain(error, of && silent ? () => answers.ask(answers.key()) : null);
    if (!of || silent) return;
    if (answers.now) store.go(-1);
    else if (Object.keys(of.draft.changes).length || of.draft.edges) store.put({ draft: firstView().draft });
  },
});
let hovered = null;
let added = null;
let preview = null;
let drawn = 0;
// How often a scenario and a walk were asked for: only the last of each is shown.
let opens = 0;
let walks = 0;
// What was done to other scenarios, so that looking elsewhere loses nothing.
const kept = new Map();

const say = (text) => {
  find("map-status").textContent = text;
};
const labels = () => ({ names: world.category_names, categories: world.categories });
const context = () => ({
  view: store.view,
  world,
  answer: answers.now,
  labels: world && labels(),
  tools,
  walk,
  live,
  added,
  hovered,
  preview,
});

async function link(a, b) {
  const [asked, pair] = [world, `${world.labels[a]}–${world.labels[b]}`];
  try {
    const { linked } = await answers.compute("/api/linked", {
      world: world.world,
      ...store.view.draft,
      states: [a, b],
    });
    if (world !== asked) return undefined;
    // What was edited meanwhile stays.
    const { draft } = store.view;
    const drawnByHand = edgesOf(draft, world).some((edge) => pairKey(...edge) === pairKey(a, b));
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
    if (state === hovered || !answers.now) return;
    hovered = state;
    const card = find("hover-card");
    card.hidden = hovered === null;
    if (hovered !== null) card.textContent = tellState(hovered, context());
    redraw();
  },
  focus(state) {
    if (!answers.now) return;
    if (state !== null) say(tellState(state, context()));
    redraw();
  },
  pick(states) {
    if (!answers.now) return;
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
const walk = new WalkPanel(find("panel-walk"), find("walk-results"), find("walk-bar"), store, (at) => runWalk(at), () => saver.svg());
const live = new LivePanel(find("panel-live"), () => store.view, () => redraw());
const saver = new SavePanel(
  find("panel-save"),
  () => ({ view: store.view, world, map, answer: answers.now, fresh: answers.isFresh, walked: walk.walked, request: () => ({ world: world.world, ...store.view.draft }) }),
  (...asked) => answers.compute(...asked),
  (opened, saved) => reopen(opened, saved),
);
const compare = new Compare(
  { panel: find("panel-compare"), results: find("compare-results"), holder: find("holder-b") },
  store,
  { answers, map, context, say, redraw: () => redraw(), goTo: (draft, label) => store.change({ draft }, label) },
);
const curve = new Curve(store, answers, (draft, label) => store.change({ draft }, label));
const effectsPanel = new Effects(find("effects"), curve.card, {
  link,
  highlight(edges, outline) {
    added = edges;
    preview = edges && outline ? { outline, state: edges[0][0] } : null;
    redraw();
  },
  repair: (method) => set({ repair: method }, `Repair: ${method}`),
  stop: () => store.go(-1),
  state: (state) => answers.askRepairs({ of: answers.now.of, state }),
});

// `at`: the time to show; without one the end.
async function runWalk(at = null) {
  const { view } = store;
  const asked = world;
  const turn = (walks += 1);
  find("run-walk").disabled = true;
  try {
    const walked = await answers.compute("/api/walk", { world: world.world, ...walk.request(view) });
    // A film of another scenario, or of somebody who was asked for before, comes too late.
    if (world !== asked || turn !== walks) return;
    walk.showResult(walked, view, world, map.places);
    store.change({
      // Who went elsewhere meanwhile is not called back.
      ...(store.view.tab === view.tab ? { tab: "walk", colour: "posterior" } : {}),
      walk: { ...store.view.walk, time: at ?? walked.path.length, person: walked.person, shown: at === null ? 0 : store.view.walk.shown },
    });
    const who = walked.others.length ? ` about person ${walked.person + 1}` : "";
    say(walked.runs.map((run, i) => `${walked.runs.length > 1 ? `${"AB"[i]}: ` : ""}${run.answers} simulated answers${who}.`).join(" "));
  } catch (error) {
    if (turn === walks) complain(error);
  } finally {
    if (turn === walks) find("run-walk").disabled = false;
  }
}

// Without a scenario there is a page that says what this is and offers some.
const startPage = new StartPage(find("start"), {
  open: (chosen) => open(chosen),
  home: () => goHome(),
  turn: () => opens,
  async tour() {
    if (await open({ name: "city", size: 24 })) tour.start();
  },
});
const tour = new Tour(find("tour"), store, () => goHome());

function showStart(on) {
  find("start").hidden = !on;
  find("studio").hidden = on;
  document.documentElement.toggleAttribute("data-start", on);
}

function goHome() {
  opens += 1;
  tour.go(null);
  showStart(true);
  history.replaceState(null, "", location.pathname);
  document.title = "dphmm studio";
  return startPage.show();
}

// Show another scenario; what was drawn on the last one belongs to it alone.
function enter(opened, chosen, keep) {
  if (world) kept.set(world.world, { ...store.keep(), versions: store.view.versions, other: store.view.other });
  world = opened;
  showStart(false);
  answers.forget();
  hovered = null;
  tools.chosen = [];
  tools.focus = null;
  walk.forget();
  const again = kept.get(world.world);
  store.recall(keep ? null : again);
  const { draft, step, colour, walk: walked } = firstView();
  const first = { draft: again?.draft ?? draft, step: again?.step ?? step, versions: again?.versions ?? [], other: again?.other ?? -1 };
  const before = store.view;
  // What is released of one scenario is no news of another.
  find("tab-live").hidden = !world.watched;
  const tab = before.tab === "live" && !world.watched ? "policy" : before.tab;
  store.put({ tab, ...(keep ? {} : { world: chosen, ...first, colour, walk: walked, zoom: null }) });
  // Where the view did not change by that, nobody has asked yet.
  if (store.view.draft === before.draft && store.view.step === before.step) answers.ask(answers.key());
  // While the server computes, the map gets ready.
  map.show(world, layout(world));
  if (keep && before.zoom) map.zoomTo(before.zoom);
}

// The last one that was asked for is shown, whichever answer comes last; whether this is it.
async function open(chosen, from = null) {
  const turn = (opens += 1);
  try {
    const opened = await ask("/api/open", { ...chosen, ...(from ? { fingerprint: from.fingerprint ?? "" } : {}) });
    if (turn === opens) enter(opened, chosen, Boolean(from));
    return turn === opens;
  } catch (error) {
    if (turn !== opens) return false;
    complain(error);
    if (from && own) return open({ name: "own" });
    if (world) header.show(store.view, world, true);
    else await goHome();
    return false;
  }
}

// After saving, the file is what was seen, and nothing is left to undo.
function reopen(opened, saved) {
  const { draft, step, tab, tool, theme, colour } = store.view;
  const before = world;
  enter(opened, opened.named, false);
  store.put({ step, tab, tool, theme, colour: colour === "posterior" ? "category" : colour });
  if (draft !== saved) store.change({ draft: rebase(draft, saved, before, opened) }, "Edits made while it was saved");
}

function redraw() {
  if (!answers.now || !world) return;
  const beside = store.view.tab === "compare";
  const scene = sceneOf({ ...context(), ...(beside ? { most: compare.most(store.view), added: compare.only("only_a") } : {}) });
  map.set(scene);
  const other = beside ? compare.draw() : null;
  showLegend(find("legend"), scene, context(), other);
}

function showAll() {
  if (!answers.now || !world) return;
  const { view } = store;
  const answer = answers.now;
  header.show(view, world);
  layers.show(view, world);
  budget.show(view, world, answer.effects, answers.isFresh);
  noise.show(view, world);
  effectsPanel.show(view, world, answer, labels());
  curve.show(view, world, answer);
  time.show(view, world, answer.effects);
  walk.show(view, world);
  walk.showTime(view);
  compare.show(view, world);
  live.show(view);
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
  if (!answers.isFresh) return;
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
  const waiting = !answers.isFresh;
  document.documentElement.classList.toggle("waiting", waiting);
  find("effects").setAttribute("aria-busy", String(waiting || !answers.now.released));
}

const address = new Address(() => (world && find("start").hidden ? { view: store.view, fingerprint: world.fingerprint } : null));

store.listen((view, before) => {
  if (!world) return;
  if (view.draft !== before.draft || view.step !== before.step) {
    if (store.kind === null || store.edited) {
      answers.begin(before);
      store.edited = false;
    }
    answers.ask(answers.key(view));
  }
  if (view.tool !== before.tool) {
    tools.choose(view.tool);
    say(TOOLS.find(([name]) => name === view.tool)[2]);
  }
  if (view.tab !== before.tab) {
    showTab(view.tab);
    if (before.tab === "walk" || before.tab === "live") say(TOOLS.find(([name]) => name === view.tool)[2]);
    if (answers.now) answers.askTimeline(answers.now.of);
  }
  if (view.theme !== before.theme) header.showTheme(view);
  if (answers.now) showAll();
  address.keep();
});

find("colour").addEventListener("change", (event) => store.change({ colour: event.target.value }));
find("zoom-in").addEventListener("click", () => map.zoomBy(1.5));
find("zoom-out").addEventListener("click", () => map.zoomBy(1 / 1.5));
find("zoom-fit").addEventListener("click", () => map.fit());
find("save-button").addEventListener("click", () => store.change({ tab: "save" }));
map.onzoom = debounce(({ k, x, y }) => {
  store.view = Object.freeze({ ...store.view, zoom: k === 1 && !x && !y ? null : { k, x, y } });
  address.keep();
}, 300);
// Plots are drawn as wide as they are.
const resized = debounce(() => {
  showAll();
  if (answers.now) answers.askTimeline(answers.now.of);
}, 120);
addEventListener("resize", () => resized());
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
find("home").addEventListener("click", () => goHome());
const named = exampleIn(location.hash);
if (given || own) await open(store.view.world, given);
else if (named) await open({ name: named });
else await goHome();
