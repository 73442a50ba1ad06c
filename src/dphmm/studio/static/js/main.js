// The page: one view, one world, and everything redrawn from them.

import { debounce } from "./elements.js";
import { ask, oneAtATime } from "./server.js";
import { Store, firstView, fromFragment, pairKey, restore, toFragment, toggleLink } from "./view.js";
import { StateMap, layout } from "./map.js";
import { Tools, TOOLS, toolBar } from "./tools.js";
import { toolActions } from "./actions.js";
import { Header } from "./header.js";
import { PolicyPanel, guide } from "./policy.js";
import { Effects } from "./effects.js";
import { TimePanel } from "./time.js";
import { WalkPanel } from "./walk.js";
import { WalkResults } from "./results.js";
import { DownloadsPanel } from "./downloads.js";
import { setUpWords } from "./words.js";
import { colourChoice, labelsOf, sceneOf, showLegend, tellState } from "./scene.js";
import { setUpRadios, setUpTabs, showTab } from "./tabs.js";

const find = (id) => document.getElementById(id);
const own = document.querySelector('meta[name="studio-own"]').content;
const given = await fromFragment(location.hash);
const store = new Store(restore(given ?? (own ? { world: { name: "own" } } : null)));
const map = new StateMap(find("map"));
let world = null;
let effects = null;
let repairs = null;
let added = null;
let hovered = null;
let preview = null;
let drawn = 0;

const request = () => ({
  world: world.world,
  policy: store.view.policy,
  moment: store.view.moment,
  epsilon: store.view.epsilon,
  limit: store.view.walk.limit || undefined,
  repair: store.view.walk.repair,
  mechanism: store.view.walk.mechanism,
});

function complain(error) {
  const box = find("problem");
  box.hidden = false;
  box.textContent = error.message;
  clearTimeout(complain.timer);
  complain.timer = setTimeout(() => {
    box.hidden = true;
  }, 8000);
}

// The server keeps only a few worlds; one that it forgot is opened again.
async function compute(path, body) {
  try {
    return await ask(path, body);
  } catch (error) {
    if (error.status !== 404) throw error;
    const again = await ask("/api/open", store.view.world);
    return ask(path, { ...body, world: again.world });
  }
}

const say = (text) => {
  find("map-status").textContent = text;
};
const context = () => ({
  view: store.view,
  world,
  effects,
  labels: world && labelsOf(store.view, world),
  tools,
  walk,
  added,
  hovered,
  preview,
});
const link = async (a, b) => {
  try {
    const { linked } = await compute("/api/linked", { ...request(), states: [a, b] });
    store.policy(toggleLink(store.view.policy, a, b, linked), "link");
    say(`${linked ? "Unlinked" : "Linked"} ${world.labels[a]} and ${world.labels[b]}.`);
  } catch (error) {
    complain(error);
  }
};

const tools = new Tools(
  map,
  toolActions({
    store,
    say,
    link,
    redraw: () => redraw(),
    now: context,
    hover(state) {
      if (state === hovered || !effects) return;
      hovered = state;
      showHover();
      redraw();
    },
  }),
);

const effectsPanel = new Effects(find("effects"), {
  link,
  highlight(edges, outline) {
    added = edges;
    preview = edges && outline ? { outline, state: edges[0][0] } : null;
    redraw();
  },
  repair: (edges) => repair(edges),
  state: (state) => askRepairs({ state }),
});
const policyPanel = new PolicyPanel(find("panel-policy"), store);
const timePanel = new TimePanel(find("panel-time"), store);
const results = new WalkResults(find("walk-results"), find("walk-bar"), store);
const walk = new WalkPanel(find("panel-walk"), results, store, () => runWalk());
const downloads = new DownloadsPanel(find("panel-download"), () => ({
  view: store.view,
  world,
  map,
  walked: walk.walked,
  request,
}));
const header = new Header(store, own, (next) => open(next));

function repair(edges) {
  added = null;
  const { policy } = store.view;
  const keys = new Set(edges.map(([a, b]) => pairKey(a, b)));
  store.policy(
    {
      links: [
        ...policy.links.filter(([a, b]) => !keys.has(pairKey(a, b))),
        ...edges.map(([a, b]) => [Math.min(a, b), Math.max(a, b)]),
      ],
      unlinks: policy.unlinks.filter(([a, b]) => !keys.has(pairKey(a, b))),
    },
    "repair",
  );
}

const askEffects = oneAtATime(async (body) => {
  try {
    const answer = await compute("/api/effects", body);
    if (body.world !== world.world) return;
    effects = answer;
    repairs = null;
    added = null;
    preview = null;
    showAll();
    askRepairs({});
    askTimeline();
  } catch (error) {
    complain(error);
    // What the server refused is taken back; a link may hold what its world does not allow.
    if (effects) store.undo();
    else if (store.view.policy.base !== "complete") {
      store.change({ policy: { ...firstView().policy, base: "complete" }, moment: {}, epsilon: "1" });
    }
  }
});

// While a slider moves only what follows it at once is asked for; the rest waits until it rests.
const pause = () => (store.lastKind?.startsWith("slide") ? 250 : 20);

const askRepairs = debounce(
  oneAtATime(async (extra) => {
    const body = { ...request(), ...extra };
    try {
      const answer = await compute("/api/repairs", body);
      if (JSON.stringify(body.policy) !== JSON.stringify(store.view.policy) || body.world !== world.world)
        return;
      repairs = answer;
      effectsPanel.showRepairs(answer);
      showGuide();
    } catch (error) {
      effectsPanel.showRepairs({ error: error.message });
    }
  }),
  pause,
);

const askTimeline = debounce(
  oneAtATime(async () => {
    const { moment } = store.view;
    if (store.view.tab !== "time" || (moment.start === undefined && !moment.states)) return;
    try {
      const answer = await compute("/api/timeline", {
        ...request(),
        moment: { ...moment, steps: 0 },
        horizon: Math.max(12, Math.min(60, (moment.steps ?? 0) + 3)),
      });
      timePanel.showTimeline(answer.steps, store.view.moment.steps ?? 0);
    } catch (error) {
      complain(error);
    }
  }),
  pause,
);

async function runWalk() {
  find("run-walk").disabled = true;
  try {
    const body = walk.request(store.view);
    walk.world = world;
    walk.places = map.places;
    const answer = await compute("/api/walk", { world: world.world, ...body });
    store.change({
      colour: "posterior",
      walk: {
        ...store.view.walk,
        time: Math.max(1, ...answer.runs.map(({ steps }) => steps.length)),
        shown: Math.min(store.view.walk.shown, answer.runs.length - 1),
      },
    });
    walk.showResult(answer, store.view);
    showAll();
    say(
      answer.runs
        .map(
          (run, i) =>
            `${answer.runs.length > 1 ? `${"AB"[i]}: ` : ""}${run.steps.length} simulated steps released` +
            `${run.refused ? ", then the limit was reached" : ""}.`,
        )
        .join(" "),
    );
  } catch (error) {
    complain(error);
  } finally {
    find("run-walk").disabled = false;
  }
}

async function open(chosen, keep = false) {
  try {
    const opened = await ask("/api/open", chosen);
    world = opened;
    effects = null;
    hovered = null;
    tools.chosen = [];
    tools.focus = null;
    walk.forget();
    const places = layout(world);
    walk.world = world;
    map.show(world, places);
    if (!keep) {
      store.forget();
      const middle = Math.max(1, Math.round((Number(world.radius.most) / Number(world.radius.step)) * 0.4));
      store.change({
        world: chosen,
        moment: {},
        colour: "category",
        zoom: null,
        ...opened.view,
        policy: {
          ...firstView().policy,
          base: world.cell ? "distance" : "categories",
          radius: String(Number((middle * Number(world.radius.step)).toFixed(6))),
          ...opened.view?.policy,
        },
        walk: { ...store.view.walk, start: world.cell ? middleOf(map) : 0, pinned: null, ...opened.view?.walk },
      });
    } else {
      if (store.view.zoom) map.zoomTo(store.view.zoom);
      askEffects(request());
    }
  } catch (error) {
    complain(error);
    if (keep) open({ name: "paper" });
  }
}

function middleOf({ tree, bounds: [left, bottom, right, top] }) {
  return tree.find((left + right) / 2, (bottom + top) / 2);
}

function showHover() {
  const card = find("hover-card");
  card.hidden = hovered === null;
  if (hovered === null) return;
  card.textContent = tellState(hovered, context());
}

function redraw() {
  if (!effects || !world) return;
  const scene = sceneOf(context());
  map.set(scene);
  showLegend(find("legend"), scene, {
    ...context(),
    walking: store.view.tab === "walk" && walk.walked,
    exposed: scene.exposed.length > 0,
  });
}

function showGuide() {
  if (!effects) return;
  guide(policyPanel.guide, store.view, effects.exposed, {
    step: () => store.change({ moment: { start: 0, steps: 2 } }, "guide"),
    repair: () => {
      const best = repairs?.methods.find(({ method }) => method === "min_error");
      if (best) repair(best.edges);
    },
    walk: () => {
      store.change({ tab: "walk" });
      runWalk();
    },
  });
}

function showAll() {
  if (!effects || !world) return;
  const { view } = store;
  const labels = labelsOf(view, world);
  header.show(view, world);
  policyPanel.show(view, world, labels);
  effectsPanel.show(world, effects, view.epsilon, labels);
  if (repairs) effectsPanel.showRepairs(repairs);
  timePanel.show(view, world, effects);
  walk.show(view, world);
  downloads.show();
  colourChoice(find("colour"), view, walk.walked);
  toolBar(find("tools"), view.tool, (tool) => store.change({ tool }));
  showGuide();
  redraw();
  drawn += 1;
  document.documentElement.dataset.drawn = drawn;
  if (drawn === 1) performance.mark("studio-ready");
}

const keepLink = debounce(async () => {
  const fragment = await toFragment(store.view);
  if (fragment.length < 30000) history.replaceState(null, "", fragment);
}, 500);

store.listen((view, before) => {
  if (
    view.world !== before.world ||
    view.policy !== before.policy ||
    view.moment !== before.moment ||
    view.epsilon !== before.epsilon ||
    view.walk.mechanism !== before.walk.mechanism
  ) {
    askEffects(request());
  }
  if (view.tool !== before.tool) {
    tools.choose(view.tool);
    say(TOOLS.find(([name]) => name === view.tool)[2]);
  }
  if (view.tab !== before.tab) {
    showTab(view.tab);
    askTimeline();
  }
  if (view.theme !== before.theme) {
    header.showTheme(view);
    if (walk.walked) results.showTime(view);
  }
  if (view.walk !== before.walk && walk.walked) results.showTime(view);
  const answerless =
    view.policy === before.policy &&
    view.moment === before.moment &&
    view.epsilon === before.epsilon &&
    view.world === before.world;
  if (answerless) showAll();
  else policyPanel.show(view, world, labelsOf(view, world));
  keepLink();
});

find("colour").addEventListener("change", (event) => store.change({ colour: event.target.value }));
find("zoom-in").addEventListener("click", () => map.zoomBy(1.5));
find("zoom-out").addEventListener("click", () => map.zoomBy(1 / 1.5));
find("zoom-fit").addEventListener("click", () => map.fit());
const keepZoom = debounce(({ k, x, y }) => {
  store.view.zoom = k === 1 && !x && !y ? null : { k, x, y };
  keepLink();
}, 300);
map.onzoom = keepZoom;
matchMedia("(prefers-color-scheme: dark)").addEventListener("change", () => {
  header.showTheme(store.view);
  showAll();
});

setUpWords();
setUpRadios();
setUpTabs((tab) => store.change({ tab }));
showTab(store.view.tab);
tools.choose(store.view.tool);
header.showTheme(store.view);
say(TOOLS.find(([name]) => name === store.view.tool)[2]);
await open(store.view.world, given !== null || !own);
addEventListener("hashchange", async () => {
  if (await fromFragment(location.hash)) location.reload();
});
