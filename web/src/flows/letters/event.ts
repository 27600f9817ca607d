import { parse } from "#/api/json";

/** What somebody wrote in place of an event: the event, or why it is none. */
export function parseEvent(text: string): { event: Record<string, unknown> | null; problem: string | null } {
  let event: unknown;
  try {
    event = parse(text);
  } catch (error) {
    return { event: null, problem: `Not valid JSON: ${(error as Error).message}` };
  }
  if (typeof event !== "object" || event === null || Array.isArray(event)) {
    return { event: null, problem: "An event must be a JSON object with the input columns of the step." };
  }
  return { event: event as Record<string, unknown>, problem: null };
}
