// The page's address holds the view, so that a link to it and a reload show the same. What it does
// not hold yet, or is too long for it, is kept in the window while the page is reloaded.

import { debounce } from "./elements.js";
import { fromFragment, toFragment } from "./state.js";

const PAUSE = 500;
const LONGEST = 30000;
const LEFT = "dphmm-studio-left";

// A plain name after the # opens that example.
export const exampleIn = (hash) => /^#(paper|city|grid|clinic)$/.exec(hash)?.[1];

// The view that was left at this address, once; who came by a link or typed it wants no more than
// the address says.
export function takeLeft(way = performance.getEntriesByType("navigation")[0]?.type) {
  try {
    const left = JSON.parse(sessionStorage.getItem(LEFT));
    sessionStorage.removeItem(LEFT);
    return way !== "navigate" && left?.address === location.href ? left.view : null;
  } catch {
    return null;
  }
}

export class Address {
  // now(): { view, fingerprint } of what is looked at, or null.
  constructor(now) {
    Object.assign(this, { now, written: null, moved: false });
    this.keep = debounce(() => this.write(), PAUSE);
    addEventListener("pagehide", () => this.leave());
    // Who typed another address wants what that one holds: nothing is written over it meanwhile.
    addEventListener("hashchange", async () => {
      this.moved = true;
      if (exampleIn(location.hash) || (await fromFragment(location.hash))) location.reload();
      else this.moved = false;
    });
  }

  async write() {
    const now = this.now();
    if (!now) return;
    const fragment = await toFragment(now.view, now.fingerprint);
    if (fragment.length >= LONGEST || this.now()?.view !== now.view || this.moved) return;
    history.replaceState(null, "", fragment);
    this.written = now.view;
  }

  leave() {
    const now = this.now();
    try {
      sessionStorage.removeItem(LEFT);
      if (!now || now.view === this.written || this.moved) return;
      const view = { ...now.view, fingerprint: now.fingerprint };
      sessionStorage.setItem(LEFT, JSON.stringify({ address: location.href, view }));
    } catch {
      // A window without room for it: what the address holds is what there is.
    }
  }
}
