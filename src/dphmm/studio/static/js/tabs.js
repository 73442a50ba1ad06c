// The four tabs, with the arrow keys that screen readers expect.

const tabs = () => [...document.querySelectorAll("[role=tab]")];

// In a group of radio buttons the arrow keys choose, as they do in a native one.
export function setUpRadios() {
  document.addEventListener("keydown", (event) => {
    const by = { ArrowRight: 1, ArrowDown: 1, ArrowLeft: -1, ArrowUp: -1 }[event.key];
    const group = event.target.closest?.("[role=radiogroup]");
    if (!by || !group) return;
    const all = [...group.querySelectorAll("[role=radio]")];
    const next = all[(all.indexOf(event.target) + by + all.length) % all.length];
    event.preventDefault();
    next.focus();
    next.click();
  });
}

export function setUpTabs(choose) {
  for (const tab of tabs()) {
    tab.addEventListener("click", () => choose(tab.dataset.tab));
    tab.addEventListener("keydown", (event) => {
      const all = tabs();
      const by = { ArrowRight: 1, ArrowLeft: -1 }[event.key];
      if (!by) return;
      const next = all[(all.indexOf(tab) + by + all.length) % all.length];
      next.focus();
      choose(next.dataset.tab);
    });
  }
}

export function showTab(name) {
  for (const tab of tabs()) {
    const chosen = tab.dataset.tab === name;
    tab.setAttribute("aria-selected", String(chosen));
    tab.tabIndex = chosen ? 0 : -1;
    document.getElementById(tab.getAttribute("aria-controls")).hidden = !chosen;
  }
  document.querySelector("main").dataset.tab = name;
}
