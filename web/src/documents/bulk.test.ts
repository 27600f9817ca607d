import { expect, it } from "vitest";
import { each, toggleOf } from "./bulk";

it("offers what makes sense for a flow", () => {
  expect(toggleOf({ status: "active" })).toBe("pause");
  expect(toggleOf({ status: "paused" })).toBe("resume");
  expect(toggleOf({ status: "failed" })).toBe("start");
  expect(toggleOf({ status: null })).toBeNull();
});

it("goes on after a refusal, a few at a time", async () => {
  let [now, most] = [0, 0];
  const seen: number[] = [];
  const refused = await each(
    Array.from({ length: 10 }, (_, number) => number),
    async (number) => {
      now += 1;
      most = Math.max(most, now);
      await Promise.resolve();
      now -= 1;
      if (number === 3) throw new Error("no");
    },
    (finished) => seen.push(finished),
  );
  expect(refused.map(({ item }) => item)).toEqual([3]);
  expect(seen).toEqual([1, 2, 3, 4, 5, 6, 7, 8, 9, 10]);
  expect(most).toBe(4);
});
