import { describe, expect, it } from "vitest";
import { columnsOf, typedValue } from "./ddl";

describe("the columns of a schema", () => {
  it("are found whatever their types hold", () => {
    expect(
      columnsOf("id BIGINT NOT NULL, price DECIMAL(10, 2), m MAP<STRING, ARRAY<INT>>, `a b`: string"),
    ).toEqual([
      { name: "id", type: "BIGINT", required: true },
      { name: "price", type: "DECIMAL(10, 2)", required: false },
      { name: "m", type: "MAP<STRING, ARRAY<INT>>", required: false },
      { name: "a b", type: "string", required: false },
    ]);
    expect(columnsOf("tier INT, `a b` ARRAY<STRUCT<x: INT, y: DECIMAL(3, 1)>> NOT NULL")).toEqual([
      { name: "tier", type: "INT", required: false },
      { name: "a b", type: "ARRAY<STRUCT<x: INT, y: DECIMAL(3, 1)>>", required: true },
    ]);
    expect(columnsOf(" ")).toEqual([]);
  });

  it("take what was typed as their type wants it", () => {
    expect(typedValue("12", "BIGINT")).toBe(12);
    expect(typedValue("12", "STRING")).toBe("12");
    expect(typedValue('["a"]', "ARRAY<STRING>")).toEqual(["a"]);
    expect(typedValue("twelve", "BIGINT")).toBe("twelve");
  });
});
