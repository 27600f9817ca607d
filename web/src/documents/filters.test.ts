import { describe, expect, it } from "vitest";
import { KINDS } from "#/api/kinds";
import { filterKinds } from "./columns";
import { modelOf, numberCondition, numberText, withModel } from "./filters";

const kinds = filterKinds(KINDS.Pipeline);

describe("filters in the address", () => {
  it("are read by the columns that there are", () => {
    const model = modelOf(
      new URLSearchParams("status=failed&in_rate=5&lag=lessThanOrEqual:9&other=1"),
      kinds,
    );
    expect(model).toEqual({
      status: { filterType: "text", type: "contains", filter: "failed" },
      in_rate: { filterType: "number", type: "greaterThanOrEqual", filter: 5 },
      lag: { filterType: "number", type: "lessThanOrEqual", filter: 9 },
    });
  });

  it("are written as they were read, and leave the rest alone", () => {
    const address = new URLSearchParams("q=orders&lag=lessThanOrEqual%3A9&name=a+b");
    const model = modelOf(address, kinds);
    expect(modelOf(withModel(address, model, kinds), kinds)).toEqual(model);
    expect(withModel(address, {}, kinds).toString()).toBe("q=orders");
  });

  it("do without what is no number", () => {
    expect(modelOf(new URLSearchParams("lag=much"), kinds)).toEqual({});
  });
});

describe("a filter of numbers", () => {
  const number = (type: string, filter: number) => ({ filterType: "number", type, filter });

  it("is read as people type it", () => {
    expect(numberCondition("5")).toEqual(number("greaterThanOrEqual", 5));
    expect(numberCondition("> 5")).toEqual(number("greaterThan", 5));
    expect(numberCondition("<1.5k")).toEqual(number("lessThan", 1500));
    expect(numberCondition("<= 2M")).toEqual(number("lessThanOrEqual", 2_000_000));
    expect(numberCondition("=0")).toEqual(number("equals", 0));
    expect(numberCondition(" ")).toBeNull();
    expect(numberCondition(">")).toBeUndefined();
    expect(numberCondition("much")).toBeUndefined();
  });

  it("is written so that it reads the same", () => {
    for (const text of ["5", "> 5", "< 0.5", "<= 7", "= 0"]) {
      expect(numberText(numberCondition(text)!)).toBe(text);
    }
  });
});
