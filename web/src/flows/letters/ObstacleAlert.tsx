import { Alert, List, Text } from "@mantine/core";
import { plural } from "#/components/format";
import type { Letter } from "../api";
import { isBlocked } from "./obstacles";

/** Letters of a page that can't be replayed: how many, and why. Nothing if all can be. */
export function ObstacleAlert({ letters }: { letters: readonly Letter[] }) {
  const held = letters.filter(({ obstacle, state }) => obstacle !== null && state === "new");
  if (held.length === 0) return null;
  const reasons = new Map<string, { hint: string | null; letters: Letter[] }>();
  for (const letter of held) {
    const { message, hint = null } = letter.obstacle!;
    const known = reasons.get(message) ?? { hint, letters: [] };
    reasons.set(message, { ...known, letters: [...known.letters, letter] });
  }
  const inInput = held.filter((each) => each.in_input).length;
  const title = `${plural(held.length, "letter")} can't be replayed`;
  return (
    <Alert
      color="orange"
      variant="light"
      title={held.every(isBlocked) ? title : `${title} from the step that failed`}
    >
      <List size="sm">
        {[...reasons].map(([message, { hint, letters: those }]) => (
          <List.Item key={message}>
            {plural(those.length, "letter")}: {message}
            {hint && `. To continue: ${hint}`}.
          </List.Item>
        ))}
      </List>
      <Text size="sm" mt={4}>
        {inInput > 0
          ? `"Send to input" appends the original event to the input stream again. Possible for ${plural(inInput, "letter")}.`
          : "Their original events are no longer in the input, so they can't be sent to it again."}
      </Text>
    </Alert>
  );
}
