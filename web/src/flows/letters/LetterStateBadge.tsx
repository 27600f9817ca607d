import { Badge } from "@mantine/core";
import type { Letter } from "../api";

const COLORS: Record<Letter["state"], string> = {
  new: "red",
  replaying: "blue",
  replayed: "teal",
  discarded: "gray",
};

/** What has become of a letter. */
export function LetterStateBadge({ letter }: { letter: Letter }) {
  const outcome = letter.state === "replayed" ? letter.replays.at(-1)?.outcome : undefined;
  const again = outcome === "failed_again";
  return (
    <Badge variant="light" tt="none" color={again ? "orange" : COLORS[letter.state]}>
      {again ? "failed again" : outcome === "sent" ? "sent to input" : letter.state}
    </Badge>
  );
}
