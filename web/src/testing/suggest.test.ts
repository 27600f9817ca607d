import { describe, expect, it } from "vitest";
import { isRaw, parseType, sampleEvent, suggested } from "./suggest";

describe("suggested", () => {
  it("fits columns of every type", () => {
    const columns = [
      { name: "id", type: "bigint" },
      { name: "price", type: "decimal(10,2)" },
      { name: "ok", type: "boolean" },
      { name: "at", type: "timestamp" },
      { name: "day", type: "date" },
      { name: "tags", type: "array<string>" },
      { name: "byName", type: "map<string,int>" },
      { name: "who", type: "struct<name:string,home:struct<city:string,no:int>>" },
      { name: "_offset", type: "bigint" },
    ];
    expect(sampleEvent(columns)).toEqual({
      id: 1,
      price: 10,
      ok: true,
      at: "2026-01-01T12:00:00Z",
      day: "2026-01-01",
      tags: ["tags 1"],
      byName: { key: 1 },
      who: { name: "name 1", home: { city: "city 1", no: 1 } },
    });
    expect(suggested(columns).map((event) => event.id)).toEqual([1, 2, 3]);
  });

  it("gives a raw source texts", () => {
    const raw = ["value", "key", "headers"].map((name) => ({ name, type: "string" }));
    expect(isRaw(raw)).toBe(true);
    expect(sampleEvent(raw)).toEqual({ value: '{"id":1}' });
  });
});

describe("types", () => {
  it("reads what is inside of them", () => {
    const found = parseType("array<struct<x:int,y:decimal(3,1)>>");
    expect(found.inner[0]!.type.inner.map((each) => [each.name, each.type.name])).toEqual([
      ["x", "int"],
      ["y", "decimal"],
    ]);
  });
});
