import { describe, expect, it } from "vitest";
import { begin, record, redo, undo } from "./history";

describe("history", () => {
  it("goes back and forth, and forgets the future at an edit", () => {
    let history = record(record(begin("a"), "b", null, 1), "c", null, 2);
    history = undo(history);
    expect(history.text).toBe("b");
    expect(redo(history).text).toBe("c");
    history = record(history, "d", null, 3);
    expect(redo(history).text).toBe("d");
    expect(undo(undo(undo(history))).text).toBe("a");
  });

  it("takes typing back in one go, but not what was typed elsewhere or later", () => {
    let history = record(record(begin(""), "s", "query", 1000), "se", "query", 1500);
    expect(undo(history).text).toBe("");
    history = record(history, "sel", "query", 5000);
    expect(undo(history).text).toBe("se");
    history = record(history, "x", "where", 5001);
    expect(undo(history).text).toBe("sel");
  });
});
