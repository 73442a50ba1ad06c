// What the server said, and of which view it said it. Parts that come later join the first; what
// was said of another view is dropped. Whoever shows it never shows an old number as a new one.

import { debounce } from "./elements.js";
import { ask, oneAtATime } from "./server.js";

const HORIZON = 10;

const isOf = (one, other) => one.world === other.world && one.draft === other.draft && one.step === other.step;
const body = (of, more = {}) => ({ world: of.world, ...of.draft, step: of.step, ...more });

export class Answers {
  // store; world(): what is open; show(): an answer changed; refused(of, error); timeline(steps, of).
  constructor(store, act) {
    Object.assign(this, { store, act, now: null, earlier: null, working: new Set() });
    // While a slider moves only what follows it at once is asked for; the rest waits until it rests.
    const pause = (usual) => () => (store.kind?.startsWith("slide") ? usual + 250 : usual);
    const effects = oneAtATime((of) => this.askEffects(of));
    this.ask = (of) => {
      this.endOthers(of);
      effects(of);
    };
    this.askReleased = debounce(
      this.join("/api/released", (released) => ({ released }), (error) => ({ problem: error.message })),
      pause(10),
    );
    this.askRepairs = debounce(
      this.join(
        "/api/repairs",
        (repairs) => ({ repairs }),
        (error) => ({ repairs: { error: error.message } }),
        ({ state }) => (state === undefined ? {} : { state }),
      ),
      pause(20),
    );
    this.askExpected = debounce(
      this.join("/api/expected", (expected) => ({ expected }), () => ({})),
      pause(700),
    );
    this.askTimeline = debounce(oneAtATime((of) => this.timeline(of)), pause(20));
  }

  key(view = this.store.view) {
    return { world: this.act.world()?.world, draft: view.draft, step: view.step };
  }

  get isFresh() {
    return this.now !== null && isOf(this.now.of, this.key());
  }

  // Of another scenario nothing is known yet.
  forget() {
    [this.now, this.earlier] = [null, null];
  }

  // An edit begins: what it is compared with is the last complete answer.
  begin(before) {
    this.earlier = this.now?.released && isOf(this.now.of, this.key(before)) ? this.now.released : null;
  }

  // The server keeps only a few scenarios; one that it forgot is opened again, if it still is what
  // is looked at.
  async compute(path, content, signal, how = ask) {
    try {
      return await how(path, content, signal);
    } catch (error) {
      if (error.status !== 404 || content.world !== this.act.world()?.world) throw error;
      const again = await ask("/api/open", this.store.view.world);
      if (again.world !== content.world) throw new Error("The file was changed since it was opened; reload the page to see it.", { cause: error });
      return how(path, content, signal);
    }
  }

  // Long work for one view; another view ends it, so that nothing waits for what nobody will see.
  async work(of, path, content) {
    const one = { of, control: new AbortController() };
    this.working.add(one);
    try {
      return await this.compute(path, content, one.control.signal);
    } catch (error) {
      throw Object.assign(error, { ended: one.control.signal.aborted });
    } finally {
      this.working.delete(one);
    }
  }

  endOthers(of) {
    for (const one of this.working) if (!isOf(one.of, of)) one.control.abort();
  }

  async askEffects(of) {
    try {
      const effects = await this.compute("/api/effects", body(of));
      if (of.world !== this.act.world().world) return;
      const { earlier } = this;
      this.now = { of, effects, released: effects.released, repairs: null, expected: null, earlier };
      this.act.show(true);
      if (!this.isFresh) return;
      if (!this.now.released) this.askReleased(of);
      this.askRepairs({ of });
      this.askTimeline(of);
      this.askExpected(of);
    } catch (error) {
      this.act.refused(error, isOf(of, this.key()) ? of : null);
    }
  }

  join(path, read, fail, more = () => ({})) {
    return oneAtATime(async (asked) => {
      const of = asked.of ?? asked;
      if (!this.now || !isOf(this.now.of, of)) return;
      let part;
      try {
        part = read(await this.work(of, path, body(of, more(asked))));
      } catch (error) {
        if (error.ended) return;
        part = fail(error);
      }
      if (!this.now || !isOf(this.now.of, of) || !this.isFresh) return;
      this.now = { ...this.now, ...part };
      this.act.show(false);
    });
  }

  async timeline(of) {
    if (this.store.view.tab !== "time" || !isOf(of, this.key())) return;
    try {
      const horizon = Math.max(HORIZON, Math.min(60, of.step));
      const { steps } = await this.work(of, "/api/timeline", { world: of.world, ...of.draft, horizon });
      if (isOf(of, this.key())) this.act.timeline(steps, of);
    } catch (error) {
      if (!error.ended && isOf(of, this.key())) this.act.refused(error, null);
    }
  }
}
