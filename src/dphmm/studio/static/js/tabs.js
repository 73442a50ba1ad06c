// The tabs, with the arrow keys that screen readers expect.

const tabs = () => [...document.querySelectorAll("[role=tab]")];

export function setUpTabs(choose) {
  for (const tab of tabs()) {
    tab.addEventListener("click", () => choose(tab.dataset.tab));
    tab.addEventListener("keydown", (event) => {
      const all = tabs().filter((one) => one.offsetParent);
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
    const panel = document.getElementById(tab.getAttribute("aria-controls"));
    if (panel.classList.contains("panel")) panel.hidden = !chosen;
  }
  document.getElementById("studio").dataset.tab = name;
}
