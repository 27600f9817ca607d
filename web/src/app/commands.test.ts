import { describe, expect, it, vi } from "vitest";
import type { AnyDocument } from "#/api/kinds";
import { asked, commandsFor, deedsOf, grouped, matches, placeOf } from "./commands";

const orders = { kind: "Pipeline", id: "orders", name: "Orders", status: "active" } as AnyDocument;

describe("commands", () => {
  it("understands a deed before a name, also when it is not typed to the end", () => {
    expect(asked("pause orders")).toEqual({ deeds: ["pause"], rest: "orders" });
    expect(asked("re or")).toEqual({ deeds: ["resume", "restart"], rest: "or" });
    expect(asked("stop")).toEqual({ deeds: [], rest: "stop" });
    expect(asked("orders raw")).toEqual({ deeds: [], rest: "orders raw" });
  });

  it("offers what makes sense", () => {
    expect(deedsOf(orders)).toEqual(["open", "edit", "test", "pause", "restart", "stop"]);
    expect(deedsOf({ ...orders, kind: "Stream", status: undefined })).toEqual(["open", "edit"]);
    const run = vi.fn();
    const [command] = commandsFor([orders], ["pause"], run);
    command?.run();
    expect(command?.label).toBe("Pause Orders");
    expect(run).toHaveBeenCalledWith("pause", orders);
    expect(commandsFor([orders, orders, orders, orders], [], run)).toHaveLength(4);
  });

  it("finds by all words and puts first what was used last", () => {
    const [a, b] = ["a", "b"].map((id) => ({ id, group: "Pages", label: `Page ${id}`, run: () => {} }));
    expect(matches(a!, "pa A")).toBe(true);
    expect(matches(a!, "pa b")).toBe(false);
    expect(grouped([a!, b!], ["b"])).toEqual([["Pages", [b, a]]]);
    expect(placeOf("test", orders)).toBe("/pipelines/orders?tab=test");
  });
});
