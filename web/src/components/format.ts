/** Numbers and times as people read them: the same everywhere. */

const BYTES = ["B", "KiB", "MiB", "GiB", "TiB", "PiB"];

export function bytes(value: number | null | undefined): string {
  if (value === null || value === undefined) return "–";
  let rest = value;
  let unit = 0;
  while (Math.abs(rest) >= 1024 && unit < BYTES.length - 1) {
    rest /= 1024;
    unit += 1;
  }
  return `${unit === 0 ? rest : rest.toFixed(rest < 10 ? 1 : 0)} ${BYTES[unit]}`;
}

/** 1 234 567 → 1.23 M; small numbers are exact. */
export function count(value: number | null | undefined): string {
  if (value === null || value === undefined) return "–";
  const size = Math.abs(value);
  if (size >= 1e9) return `${short(value / 1e9)} G`;
  if (size >= 1e6) return `${short(value / 1e6)} M`;
  if (size >= 1e4) return `${short(value / 1e3)} k`;
  return Number.isInteger(value) ? value.toLocaleString("en-US") : short(value);
}

export function rate(value: number | null | undefined): string {
  return value === null || value === undefined ? "–" : `${count(Number(value.toFixed(1)))}/s`;
}

const short = (value: number) => Number(value.toPrecision(3)).toString();

/** 90_000 → 1 min 30 s. */
export function duration(ms: number | null | undefined): string {
  if (ms === null || ms === undefined) return "–";
  if (ms < 1000) return `${Math.round(ms)} ms`;
  if (ms < 10_000) return `${Number((ms / 1000).toFixed(1))} s`;
  const parts: [number, string][] = [
    [86_400_000, "d"],
    [3_600_000, "h"],
    [60_000, "min"],
    [1000, "s"],
  ];
  const found: string[] = [];
  let rest = ms;
  for (const [size, unit] of parts) {
    const times = Math.floor(rest / size);
    if (times > 0) found.push(`${times} ${unit}`);
    rest -= times * size;
    if (found.length === 2) break;
  }
  return found.join(" ");
}

/** A moment in the reader's own time zone. */
export function moment(value: string | number | null | undefined): string {
  if (value === null || value === undefined) return "–";
  const date = new Date(value);
  const pad = (part: number) => String(part).padStart(2, "0");
  const day = `${date.getFullYear()}-${pad(date.getMonth() + 1)}-${pad(date.getDate())}`;
  return `${day} ${pad(date.getHours())}:${pad(date.getMinutes())}:${pad(date.getSeconds())}`;
}

/** A moment in little room: the time if it was today, else the day. */
export function shortMoment(value: string | number, now = Date.now()): string {
  const [day, time] = moment(value).split(" ") as [string, string];
  return moment(now).startsWith(day) ? time : day;
}

/** How long ago: 3 s ago, 2 h 5 min ago. */
export function ago(value: string | number | null | undefined, now = Date.now()): string {
  if (value === null || value === undefined) return "never";
  const ms = now - new Date(value).getTime();
  return ms < 1000 ? "just now" : `${duration(Math.floor(ms / 1000) * 1000)} ago`;
}

/** A number with its noun: 1 event, 751 events, 2 batches. */
export function plural(value: number | null | undefined, noun: string): string {
  if (value === 1) return `1 ${noun}`;
  return `${count(value)} ${noun}${/(s|x|ch|sh)$/.test(noun) ? "es" : "s"}`;
}

/** The text with its first letter in upper case. */
export const capital = (text: string): string => text.charAt(0).toUpperCase() + text.slice(1);
