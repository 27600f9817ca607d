import type { Diagnostic } from "@codemirror/lint";
import type { Text } from "@codemirror/state";
import type { Mark } from "./language";

/** Marks as ranges of the text. One whose line is not known is told beside the editor only. */
export function diagnosticsOf(text: Text, marks: readonly Mark[]): Diagnostic[] {
  const found: Diagnostic[] = [];
  for (const { line, column, message, level } of marks) {
    if (line === undefined || line < 1 || line > text.lines) continue;
    const { from: start, to: end, text: whole } = text.line(line);
    const from = Math.min(column === undefined ? start : start + column - 1, end);
    const word = column === undefined ? null : /^[\w$]+/.exec(whole.slice(from - start));
    const to = word ? from + word[0].length : end;
    found.push({ from, to, severity: level ?? "error", message });
  }
  return found.sort((one, other) => one.from - other.from);
}
