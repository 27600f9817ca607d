import { describe, expect, it } from "vitest";
import { conditionOf, contentFields, fieldOf, filterFields } from "./fields";

const event = (value: unknown) => ({ offset: 0, time: "", key: null, headers: {}, value });

describe("the fields of events", () => {
  it("are columns, or fields of JSON", () => {
    expect(contentFields("id BIGINT, name STRING", [])).toEqual(["id", "name"]);
    const raw = [event('{"a": 1, "b": 2}'), event("no JSON"), event('{"c": 9007199254740993}'), event("[1]")];
    expect(contentFields(null, raw)).toEqual(["value.a", "value.b", "value.c"]);
    expect(filterFields(null, raw)).toContain("_key");
    expect(fieldOf(raw[0]!, "value.b")).toBe(2);
    expect(fieldOf(raw[1]!, "value.b")).toBeUndefined();
    expect(fieldOf({ ...event(undefined), columns: { id: 7 } }, "id")).toBe(7);
  });
});

describe("a condition", () => {
  it("has texts in quotes, and numbers as they are", () => {
    expect(conditionOf("amount", ">", "100")).toBe("amount > 100");
    expect(conditionOf("customer", "=", "O'Neil")).toBe("customer = 'O''Neil'");
    expect(conditionOf("_key", "=", "7")).toBe("_key = '7'");
    expect(conditionOf("value.first name", "contains", "a")).toBe("value.`first name` LIKE '%a%'");
    expect(conditionOf("in", "is null", "")).toBe("`in` IS NULL");
  });
});
