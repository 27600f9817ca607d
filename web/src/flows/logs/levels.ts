import type { Level } from "./lines";

/** The least level of lines that are shown. */
export const LEVELS: { value: Level; label: string }[] = [
  { value: "debug", label: "All levels" },
  { value: "info", label: "Info and above" },
  { value: "warning", label: "Warnings and errors" },
  { value: "error", label: "Errors" },
];
