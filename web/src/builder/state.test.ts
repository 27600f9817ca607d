import { describe, expect, it } from "vitest";
import { move } from "./model";
import { reduce, start } from "./state";

const TEXT =
  "kind: Pipeline\nspec:\n  sinks:\n    - {id: a, type: drop} # first\n    - {id: b, type: drop}\n";
const swap = {
  do: "edit",
  edit: (text: string) => move(text, "pipelines", "sink", 0, 1),
  tag: null,
  now: 1,
} as const;
const ids = (state: ReturnType<typeof start>) =>
  (state.value.spec!.sinks as { id: string }[]).map((each) => each.id);

describe("the state of the builder", () => {
  it("shows on the canvas what is typed, and in the text what is done on the canvas", () => {
    let state = reduce(start(TEXT), swap);
    expect(state.history.text).toMatch(/id: b.*\n.*id: a, type: drop\} # first/);
    expect(state.selected).toBe("sink:1");
    state = reduce(state, { do: "type", text: state.history.text.replace("id: b", "id: c"), now: 2 });
    expect(ids(state)).toEqual(["c", "a"]);
  });

  it("keeps a broken text, shows the last good one, and takes no edit of what is old", () => {
    const broken = `${TEXT}  tests: [\n`;
    let state = reduce(start(TEXT), { do: "type", text: broken, now: 1 });
    expect(state.fault?.line).toBeGreaterThan(5);
    expect(ids(state)).toEqual(["a", "b"]);
    expect(reduce(state, swap)).toBe(state);
    state = reduce(state, { do: "restore" });
    expect(state).toMatchObject({ fault: null, goodText: TEXT });
    expect(reduce(state, { do: "undo" }).history.text).toBe(broken);
  });

  it("undoes and does again across both", () => {
    const typed = TEXT.replace("id: b", "id: c");
    let state = reduce(reduce(start(TEXT), { do: "type", text: typed, now: 1 }), { ...swap, now: 2 });
    state = reduce(state, { do: "undo" });
    expect(state.history.text).toBe(typed);
    expect(reduce(state, { do: "undo" }).history.text).toBe(TEXT);
    expect(ids(reduce(state, { do: "redo" }))).toEqual(["c", "a"]);
  });

  it("opens a broken draft with the text that could be shown last", () => {
    const state = start("spec: [", TEXT);
    expect(state.fault).not.toBeNull();
    expect(ids(state)).toEqual(["a", "b"]);
  });
});
