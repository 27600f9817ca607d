/** Durations and sizes as people write them, read back without loss. */

export type Unit = "ms" | "bytes";

const SIZES: Record<Unit, [string, number][]> = {
  ms: [
    ["d", 86_400_000],
    ["h", 3_600_000],
    ["min", 60_000],
    ["s", 1000],
    ["ms", 1],
  ],
  bytes: [
    ["TiB", 1024 ** 4],
    ["GiB", 1024 ** 3],
    ["MiB", 1024 ** 2],
    ["KiB", 1024],
    ["B", 1],
  ],
};

const WORDS: Record<Unit, Record<string, number>> = {
  ms: {
    ms: 1,
    s: 1000,
    sec: 1000,
    second: 1000,
    m: 60_000,
    min: 60_000,
    minute: 60_000,
    h: 3_600_000,
    hour: 3_600_000,
    d: 86_400_000,
    day: 86_400_000,
    w: 604_800_000,
    week: 604_800_000,
  },
  bytes: {
    b: 1,
    k: 1024,
    kib: 1024,
    kb: 1000,
    m: 1024 ** 2,
    mib: 1024 ** 2,
    mb: 1000 ** 2,
    g: 1024 ** 3,
    gib: 1024 ** 3,
    gb: 1000 ** 3,
    t: 1024 ** 4,
    tib: 1024 ** 4,
    tb: 1000 ** 4,
  },
};

/** The unit that the name of a field tells: `retention_ms`, `segment_bytes`. */
export function unitOf(name: string): Unit | undefined {
  if (/(^|_)ms$/.test(name)) return "ms";
  return /(^|_)bytes$/.test(name) ? "bytes" : undefined;
}

/** 604800000 → `7 d`; the text gives exactly the same number back. */
export function withUnit(value: number, unit: Unit): string {
  for (const [word, size] of SIZES[unit]) {
    // Not more than two decimals, and none that the number does not have.
    if (value >= size && Number.isInteger((value * 100) / size)) return `${value / size} ${word}`;
  }
  return `${value} ${SIZES[unit].at(-1)![0]}`;
}

/** `7 d`, `1 h 30 min`, `64 MiB`, `500`; undefined if it is nothing of the kind. */
export function fromUnit(text: string, unit: Unit): number | undefined {
  const compact = text.trim().toLowerCase();
  if (/^\d+$/.test(compact)) return Number(compact);
  if (!/^(\d+(\.\d+)?\s*[a-z]+\s*)+$/.test(compact)) return undefined;
  let sum = 0;
  for (const [, amount, word] of compact.matchAll(/(\d+(?:\.\d+)?)\s*([a-z]+)/g)) {
    const size = WORDS[unit][word!] ?? WORDS[unit][word!.replace(/s$/, "")];
    if (size === undefined) return undefined;
    sum += Number(amount) * size;
  }
  return Math.round(sum);
}

/** How a value is understood: 5400000 → `1 h 30 min (5,400,000 ms)`. */
export function understood(value: number, unit: Unit): string {
  const exact = `${value.toLocaleString("en-US")} ${unit}`;
  const parts = [];
  let left = value;
  for (const [word, size] of SIZES[unit]) {
    const count = Math.floor(left / size);
    if (count > 0) parts.push(`${count} ${word}`);
    left -= count * size;
  }
  // Many parts say less than the number.
  return parts.length === 0 || parts.length > (unit === "ms" ? 2 : 1) || value < SIZES[unit].at(-2)![1]
    ? exact
    : `${parts.join(" ")} (${exact})`;
}

const DURATIONS: [string, number][] = [
  ["d", 86_400_000],
  ["h", 3_600_000],
  ["m", 60_000],
  ["s", 1000],
  ["ms", 1],
];

/** A duration as documents write it: 7200000 → `2h`. */
export function durationText(ms: number): string {
  const [word, size] = DURATIONS.find(([, each]) => ms > 0 && ms % each === 0) ?? ["s", 1000];
  return `${ms / size}${word}`;
}

export const EXAMPLES: Record<Unit, string> = {
  ms: "such as 500 ms, 90 s, 1 h 30 min or 7 d; a number alone is milliseconds",
  bytes: "such as 512 KiB, 64 MiB or 10 GiB",
};
