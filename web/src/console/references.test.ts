import { describe, expect, it } from "vitest";
import { parse } from "yaml";
import { pipelineOf, whyNoPipeline } from "./pipeline";
import { referencesIn, tablesIn } from "./references";

describe("the tables of a query", () => {
  it("stand after FROM and JOIN", () => {
    expect(tablesIn("SELECT * FROM orders JOIN `a.in` ON true, (SELECT 1 FROM Third)")).toEqual([
      "orders",
      "a.in",
      "third",
    ]);
    expect(tablesIn("SELECT 1 FROM a x, b AS y, c WHERE d = 1")).toEqual(["a", "b", "c"]);
  });

  it("are neither texts, comments, functions nor subqueries with a name", () => {
    expect(tablesIn("SELECT 'from x' -- from y\n FROM range(3) /* from z */")).toEqual([]);
    expect(tablesIn("WITH big AS (SELECT * FROM orders) SELECT * FROM big")).toEqual(["orders"]);
  });

  it("may have another name", () => {
    const [plain, named] = referencesIn("SELECT * FROM a JOIN b AS c WHERE 1 = 1");
    expect([plain?.alias, named?.alias]).toEqual([false, true]);
  });
});

describe("a query as a pipeline", () => {
  const step = (sql: string) => parse(pipelineOf(sql)).spec.processors[0].query;

  it("reads its stream, and has the query as a step", () => {
    const { metadata, spec } = parse(pipelineOf("SELECT id FROM orders WHERE id > 1;"));
    expect(metadata.name).toBe("orders query");
    expect(spec.source).toEqual({ type: "stream", stream: "orders", position: "earliest" });
    expect(spec.processors).toEqual([
      { id: "query", type: "sql", query: "SELECT id FROM input WHERE id > 1" },
    ]);
  });

  it("keeps columns that are named with their table", () => {
    expect(step("SELECT orders.id FROM orders")).toBe("SELECT orders.id FROM input AS `orders`");
    expect(step("SELECT o.id FROM orders o")).toBe("SELECT o.id FROM input o");
    expect(step("SELECT value FROM `a.in`")).toBe("SELECT value FROM input");
  });

  it("needs one stream", () => {
    expect(whyNoPipeline("SELECT 1")).toMatch("no stream");
    expect(whyNoPipeline("SELECT * FROM a JOIN b")).toMatch("names 2");
    expect(whyNoPipeline("SELECT * FROM a")).toBeNull();
  });
});
