// Moves a report through people and time. The page is whole without it; it adds no facts.
(() => {
  "use strict";
  const STEP_MS = 120;
  const TRAIL = 12;
  const KINDS = { now: "estimate", late: "late", hindsight: "smooth" };
  const byId = (id) => document.getElementById(id);
  const data = JSON.parse(byId("data").textContent);
  const sections = [...document.querySelectorAll("section.person")];
  const cells = byId("cells")?.getAttribute("d").split("\n") ?? [];
  const state = { person: 0, step: null, kind: "hindsight", timer: 0 };
  const controls = byId("controls");
  const slider = byId("time");
  const unpacked = new Map();

  // The classes of all states at all steps: one byte each.
  async function unpack(person, kind) {
    const key = `${person} ${kind}`;
    if (!unpacked.has(key)) {
      const bytes = Uint8Array.from(atob(data.people[person].beliefs[kind]), (c) => c.charCodeAt(0));
      const stream = new Blob([bytes]).stream().pipeThrough(new DecompressionStream("deflate"));
      unpacked.set(key, new Uint8Array(await new Response(stream).arrayBuffer()));
    }
    return unpacked.get(key);
  }

  function points(line) {
    return line.getAttribute("points").split(" ").map((pair) => pair.split(",").map(Number));
  }

  function element(name, attributes) {
    const made = document.createElementNS(document.querySelector("svg").namespaceURI, name);
    for (const [key, value] of Object.entries(attributes)) made.setAttribute(key, value);
    return made;
  }

  async function drawHeat(section) {
    const heat = section.querySelector("g.heat");
    if (!heat) return;
    const { person, step, kind } = state;
    if (step === null) {
      heat.replaceChildren();
      return;
    }
    const classes = (await unpack(person, kind)).subarray(step * cells.length, (step + 1) * cells.length);
    if (person !== state.person || step !== state.step || kind !== state.kind) return;
    const parts = data.classes.map(() => []);
    classes.forEach((level, cell) => {
      if (level) parts[level - 1].push(cells[cell]);
    });
    heat.replaceChildren(
      ...parts.flatMap((some, level) => (some.length ? [element("path", { d: some.join(""), class: `h${level}` })] : [])),
    );
  }

  function drawMoment(section) {
    const moment = section.querySelector("g.moment");
    if (!moment) return;
    const marks = [];
    if (state.step !== null) {
      for (const [kind, name] of Object.entries(KINDS)) {
        const line = points(section.querySelector(`polyline.path.${name}`));
        if (kind === state.kind) {
          const trail = line.slice(Math.max(0, state.step - TRAIL), state.step + 1);
          marks.push(element("polyline", { points: trail.join(" "), class: `curve ${name} trail` }));
        }
        const [x, y] = line[state.step];
        marks.push(element("circle", { cx: x, cy: y, r: kind === state.kind ? 6.5 : 4.5, class: `mark ${name}` }));
      }
    }
    moment.replaceChildren(...marks);
    for (const answer of section.querySelectorAll("[data-step]")) {
      const at = Number(answer.dataset.step);
      answer.classList.toggle("later", state.step !== null && at > state.step);
      answer.classList.toggle("current", state.step !== null && at === state.step);
    }
  }

  function drawCursors(section) {
    const curve = section.querySelector("polyline.curve.smooth:not(.trail)");
    const x = curve && state.step !== null ? points(curve)[state.step][0] : null;
    for (const cursor of section.querySelectorAll("line.cursor")) {
      cursor.classList.toggle("shown", x !== null);
      if (x !== null) for (const end of ["x1", "x2"]) cursor.setAttribute(end, x);
    }
  }

  function timeText() {
    const { times, utc, zone } = data.people[state.person];
    const first = state.step ?? 0;
    const inUtc = (step) => (utc.length ? ` (${utc[step]} UTC)` : "");
    if (state.step !== null) return `${times[first]} ${zone}${inUtc(first)}`;
    const last = times.length - 1;
    return `${times[0]} to ${times[last]} ${zone}`;
  }

  function draw() {
    const section = sections[state.person];
    sections.forEach((one) => (one.hidden = one !== section));
    section.classList.toggle("at-moment", state.step !== null);
    slider.max = data.people[state.person].times.length - 1;
    slider.value = state.step ?? 0;
    slider.setAttribute("aria-valuetext", timeText());
    byId("clock").textContent = timeText();
    byId("whole").setAttribute("aria-pressed", String(state.step === null));
    byId("play").setAttribute("aria-pressed", String(state.timer !== 0));
    byId("play").textContent = state.timer ? "Pause" : "Play";
    drawMoment(section);
    drawCursors(section);
    return drawHeat(section);
  }

  function pause() {
    clearInterval(state.timer);
    state.timer = 0;
  }

  function play() {
    if (state.timer) {
      pause();
    } else {
      const last = data.people[state.person].times.length - 1;
      if (state.step === null || state.step >= last) state.step = 0;
      state.timer = setInterval(() => {
        if (state.step >= last) pause();
        else state.step += 1;
        draw();
      }, STEP_MS);
    }
    draw();
  }

  function show(change) {
    pause();
    Object.assign(state, change);
    return draw();
  }

  // Which state is under the pointer, and how likely it is held to be.
  const tip = document.querySelector("main").appendChild(document.createElement("div"));
  tip.className = "tip";
  tip.hidden = true;
  async function point(event) {
    const picture = event.target.closest?.("section.person svg");
    if (!picture?.querySelector("g.heat")) {
      tip.hidden = true;
      return;
    }
    const at = new DOMPoint(event.clientX, event.clientY).matrixTransform(picture.getScreenCTM().inverse());
    let best = -1;
    let least = data.reach ** 2;
    for (let cell = 0; cell < data.labels.length; cell += 1) {
      const apart = (data.centres[2 * cell] - at.x) ** 2 + (data.centres[2 * cell + 1] - at.y) ** 2;
      if (apart < least) [best, least] = [cell, apart];
    }
    tip.hidden = best < 0;
    if (best < 0) return;
    let text = data.labels[best];
    if (state.step !== null) {
      const level = (await unpack(state.person, state.kind))[state.step * cells.length + best];
      text += level ? `: ${data.classes[level - 1]}` : `: less than ${data.classes[0].split(" ")[0]}%`;
    }
    tip.textContent = text;
    tip.style.left = `${Math.min(event.clientX + 14, innerWidth - tip.offsetWidth - 8)}px`;
    tip.style.top = `${Math.min(event.clientY + 14, innerHeight - tip.offsetHeight - 8)}px`;
  }

  controls.hidden = false;
  byId("person")?.addEventListener("change", (event) => show({ person: Number(event.target.value), step: null }));
  slider.addEventListener("input", () => show({ step: Number(slider.value) }));
  byId("play").addEventListener("click", play);
  byId("whole").addEventListener("click", () => show({ step: null }));
  for (const kind of document.querySelectorAll('input[name="kind"]')) {
    kind.addEventListener("change", () => show({ kind: kind.value, step: state.step ?? Number(slider.value) }));
  }
  addEventListener("pointermove", point);
  addEventListener("keydown", (event) => {
    if (event.key === "Escape") tip.hidden = true;
  });
  // Paper shows the whole time.
  let kept = null;
  let printing = false;
  addEventListener("beforeprint", () => {
    if (!printing) kept = state.step;
    printing = true;
    show({ step: null });
  });
  addEventListener("afterprint", () => {
    printing = false;
    show({ step: kept });
  });
  draw();
})();
