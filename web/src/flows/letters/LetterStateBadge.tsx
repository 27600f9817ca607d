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
  const again = letter.state === "replayed" && letter.replays.at(-1)?.outcome === "failed_again";
  return (
    <Badge variant="light" tt="none" color={again ? "orange" : COLORS[letter.state]}>
      {again ? "failed again" : letter.state}
    </Badge>
  );
}
