import { expect, it } from "vitest";
import { parse } from "./json";

it("writes long integers as integers", () => {
  expect(JSON.stringify({ id: 2n ** 53n })).toBe('{"id":9007199254740992}');
});

it("leaves all other numbers as they are", () => {
  expect(parse("[9007199254740991, 0.1234567890123456, 1e300]")).toEqual([
    9007199254740991, 0.1234567890123456, 1e300,
  ]);
});
