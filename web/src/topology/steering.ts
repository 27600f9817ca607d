import type { Point } from "./layout";

/** The node that an arrow key leads to: along the way of events, or to the next one above or below. */
export function nextKey(
  pressed: string,
  key: string,
  { before, after }: { before: readonly string[]; after: readonly string[] },
  places: ReadonlyMap<string, Point>,
): string | null {
  const here = places.get(key);
  if (here === undefined) return null;
  const far = (other: string) => {
    const there = places.get(other)!;
    return Math.abs(there.y - here.y) + Math.abs(there.x - here.x) / 4;
  };
  const nearest = (keys: readonly string[]) =>
    keys.reduce<string | null>(
      (best, other) => (best === null || far(other) < far(best) ? other : best),
      null,
    );
  if (pressed === "ArrowRight") return nearest(after);
  if (pressed === "ArrowLeft") return nearest(before);
  if (pressed !== "ArrowUp" && pressed !== "ArrowDown") return null;
  const sign = pressed === "ArrowDown" ? 1 : -1;
  return nearest([...places.keys()].filter((other) => (places.get(other)!.y - here.y) * sign > 1));
}
