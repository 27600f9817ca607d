import type { Problem } from "#/api/client";
import type { Mark } from "./language";

/** Problems of code as marks in it: their messages tell "(line 1, column 8)" where that is known. */
export function problemsIn(problems: readonly Problem[]): Mark[] {
  return problems.map(({ message }) => {
    const found = /\bline (\d+)(?:,? column (\d+))?/.exec(message);
    if (!found) return { message };
    return { message, line: Number(found[1]), column: found[2] === undefined ? undefined : Number(found[2]) };
  });
}
