import { describe, expect, it, vi } from "vitest";
import type { AnyDocument } from "#/api/kinds";
import { asked, commandsFor, deedsOf, grouped, matches, neededAt, placeOf } from "./commands";

const orders = { kind: "Pipeline", id: "orders", name: "Orders", status: "active" } as AnyDocument;

describe("commands", () => {
  it("understands a deed before a name, also when it is not typed to the end", () => {
    expect(asked("pause orders")).toEqual({ deeds: ["pause"], rest: "orders" });
    expect(asked("re or")).toEqual({ deeds: ["resume", "restart"], rest: "or" });
    expect(asked("stop")).toEqual({ deeds: [], rest: "stop" });
    expect(asked("orders raw")).toEqual({ deeds: [], rest: "orders raw" });
  });

  it("offers what makes sense", () => {
    expect(deedsOf(orders, "admin")).toEqual(["open", "edit", "test", "pause", "restart", "stop"]);
    expect(deedsOf({ ...orders, kind: "Stream", status: undefined }, "admin")).toEqual(["open", "edit"]);
    const run = vi.fn();
    const [command] = commandsFor([orders], ["pause"], "admin", run);
    command?.run();
    expect(command?.label).toBe("Pause Orders");
    expect(run).toHaveBeenCalledWith("pause", orders);
    expect(commandsFor([orders, orders, orders, orders], [], "admin", run)).toHaveLength(4);
  });

  it("offers what the role may do", () => {
    expect(deedsOf(orders, "viewer")).toEqual(["open"]);
    expect(deedsOf(orders, "operator")).toEqual(["open", "test", "pause", "restart", "stop"]);
    expect(commandsFor([orders], ["edit"], "operator", vi.fn())).toEqual([]);
  });

  it("knows which role a page needs", () => {
    expect(["/streams/new", "/tasks/a/edit?at=spec", "/sinks/new?clone=a"].map(neededAt)).toEqual([
      "editor",
      "editor",
      "editor",
    ]);
    expect(["/users", "/audit", "/tokens", "/pipelines/new_one", "/tasks/a?tab=test"].map(neededAt)).toEqual([
      "admin",
      "admin",
      "viewer",
      "viewer",
      "operator",
    ]);
  });

  it("finds by all words and puts first what was used last", () => {
    const [a, b] = ["a", "b"].map((id) => ({ id, group: "Pages", label: `Page ${id}`, run: () => {} }));
    expect(matches(a!, "pa A")).toBe(true);
    expect(matches(a!, "pa b")).toBe(false);
    expect(grouped([a!, b!], ["b"])).toEqual([["Pages", [b, a]]]);
    expect(placeOf("test", orders)).toBe("/pipelines/orders?tab=test");
  });
});
