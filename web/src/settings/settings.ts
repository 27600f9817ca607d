import type { Schemas } from "#/api/client";
import { bytes, duration } from "#/components/format";

export type Setting = Schemas["SettingInfo"];

export interface Section {
  name: string;
  settings: Setting[];
}

/** Settings by the table of the file that they are in, those without one first. */
export function sections(settings: readonly Setting[]): Section[] {
  const found = new Map<string, Setting[]>();
  for (const setting of settings) {
    const name = setting.name.includes(".") ? setting.name.slice(0, setting.name.indexOf(".")) : "";
    found.set(name, [...(found.get(name) ?? []), setting]);
  }
  return [...found].map(([name, own]) => ({ name, settings: own }));
}

/** Those whose name, variable, description or value has the text; with `changed`, only those that somebody set. */
export function matching(settings: readonly Setting[], text: string, changed: boolean): Setting[] {
  const wanted = text.trim().toLowerCase();
  return settings.filter(
    (setting) =>
      (!changed || isSet(setting)) &&
      [setting.name, setting.variable, setting.description, written(setting.value), setting.origin]
        .join(" ")
        .toLowerCase()
        .includes(wanted),
  );
}

/** Whether somebody has set it, be it to what it would be anyway. */
export const isSet = ({ origin }: Setting): boolean => origin !== "built-in";

/** A value as the file would have it. */
export function written(value: unknown): string {
  if (value === null || value === undefined) return "not set";
  if (typeof value === "string") return value === "" ? '""' : value;
  return JSON.stringify(value);
}

/** The same number in larger units, if its name tells the unit and that is easier to read. */
export function inWords({ name, value }: Setting): string | null {
  if (typeof value !== "number" || value < 1000) return null;
  if (name.endsWith("_ms")) return duration(value);
  return name.endsWith("_bytes") ? bytes(value) : null;
}
