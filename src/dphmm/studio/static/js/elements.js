// Small ways to make elements and to write numbers.

export function h(tag, properties = {}, ...children) {
  const element = document.createElement(tag);
  for (const [name, value] of Object.entries(properties)) {
    if (value === undefined || value === null || value === false) continue;
    if (name.startsWith("on")) element.addEventListener(name.slice(2), value);
    else if (name in element && name !== "list" && name !== "form") element[name] = value;
    else element.setAttribute(name, value === true ? "" : value);
  }
  element.append(...children.flat().filter((child) => child !== null && child !== undefined));
  return element;
}

// What a control is called: where it is there again, it has the same name.
const called = (control) => control.getAttribute("aria-label") ?? control.textContent;

// Put other children into an element; a control that had the focus and is there again keeps it, and
// a list that was scrolled stays where it was.
export function fill(element, ...children) {
  const controls = () => [...element.querySelectorAll("button, input, select, .scroll")];
  const lists = () => [...element.querySelectorAll(".scroll")];
  const scrolled = new Map(lists().map((list) => [called(list), list.scrollTop]));
  const focused = element.contains(document.activeElement) ? document.activeElement : null;
  const place = focused ? controls().indexOf(focused) : -1;
  element.replaceChildren(...children.flat().filter((child) => child !== null && child !== undefined));
  if (focused && !focused.isConnected) {
    const same = controls()[place];
    if (same && same.tagName === focused.tagName && called(same) === called(focused)) same.focus();
  }
  for (const list of lists()) if (scrolled.get(called(list))) list.scrollTop = scrolled.get(called(list));
  return element;
}

// A term that explains itself in one sentence when it is asked (see words.js).
export function word(name, text) {
  return h("button", { type: "button", className: "word", "data-word": name }, text ?? name);
}

export function field(label, control, note) {
  const id = control.id || `field-${(field.count = (field.count ?? 0) + 1)}`;
  control.id = id;
  return h(
    "div",
    { className: "field" },
    h("label", { htmlFor: id }, label),
    control,
    note ? h("p", { className: "note" }, note) : null,
  );
}

const plain = new Intl.NumberFormat("en", { maximumSignificantDigits: 4 });
const two = new Intl.NumberFormat("en", { maximumSignificantDigits: 2 });
const large = new Intl.NumberFormat("en", { maximumFractionDigits: 0 });

export function short(value) {
  if (value === null || value === undefined) return "∞";
  return Math.abs(value) >= 10000 ? large.format(value) : plain.format(value);
}

// A length as people say it: two digits, metres or kilometres; `roughly` of the library.
export function length(value, unit = "") {
  let [amount, name] = [value, unit];
  if (unit === "m" || unit === "km") {
    const metres = unit === "km" ? 1000 * value : value;
    [amount, name] = metres >= 995 ? [metres / 1000, "km"] : [metres, "m"];
  }
  const digits = amount > 0 && amount < 0.001 ? "less than 0.001" : two.format(amount);
  return `${digits} ${name}`.trim();
}

// An exact number from the server: a float to read, the fraction where it says more.
export function number(exact) {
  return exact.value === null ? "∞" : short(exact.value);
}

// Three digits that are never less than the value: for what is at most so much.
export function atMost(value) {
  const near = Number(value.toPrecision(3));
  const digit = value > 0 ? 10 ** (Math.floor(Math.log10(value)) - 2) : 0;
  return String(near >= value ? near : Number((near + digit).toPrecision(3)));
}

export function fraction(exact) {
  const text = exact.exact;
  return text.includes("/") && text.length <= 14 ? text : "";
}

export function count(amount, one, many = `${one}s`) {
  return `${short(amount)} ${amount === 1 ? one : many}`;
}

// The field that somebody is writing in, until what they wrote counts.
let written = null;
document.addEventListener("input", ({ target }) => (written = target), true);
document.addEventListener("change", () => (written = null), true);

// Show a value in a field, unless somebody is writing in it: an answer that comes meanwhile must not
// take away what they typed.
export function showIn(control, value) {
  if (document.activeElement === control && written === control) return;
  if (control.value !== String(value)) control.value = value;
}

// A number as settings have it: "0.5", or a fraction such as "1/12"; NaN where there is none.
export function toNumber(text) {
  if (text === undefined || text === null || text === "") return NaN;
  const [above, below = "1"] = String(text).split("/");
  return Number(above) / Number(below);
}

export function debounce(action, wait) {
  let timer = 0;
  return (...given) => {
    clearTimeout(timer);
    timer = setTimeout(() => action(...given), typeof wait === "function" ? wait() : wait);
  };
}

export function save(name, content, type) {
  const blob = content instanceof Blob ? content : new Blob([content], { type });
  const link = h("a", { href: URL.createObjectURL(blob), download: name });
  document.body.append(link);
  link.click();
  link.remove();
  setTimeout(() => URL.revokeObjectURL(link.href), 10000);
}

const SECONDS = { s: 1, min: 60, h: 3600, d: 86400 };

// How long some steps are, in words: hours where the clock says how long a step is.
export function lasts(steps, timeStep) {
  const [, amount, unit] = /^(\d+) ?(s|min|h|d)/.exec(String(timeStep)) ?? [];
  if (!unit) return count(steps, "step");
  const total = steps * Number(amount) * SECONDS[unit];
  const best = ["d", "h", "min", "s"].find((name) => total >= SECONDS[name] && (total / SECONDS[name]) % 0.5 === 0) ?? "min";
  return `${plain.format(total / SECONDS[best])} ${best === "d" ? (total === 86400 ? "day" : "days") : best}`;
}

// How wide a plot is on the screen: drawn at that size its texts are as large as the style says.
export function widthOf(svg, usual = 300) {
  // An empty plot is not shown, so it has no width until something is in it.
  const something = svg.firstChild ? null : svg.appendChild(document.createElementNS("http://www.w3.org/2000/svg", "g"));
  const width = Math.round(svg.getBoundingClientRect().width);
  something?.remove();
  return width || usual;
}
