import { Button, Group, Text } from "@mantine/core";
import { IconPlayerPlay, IconTrash } from "@tabler/icons-react";
import type { Kind } from "#/api/kinds";
import type { Letter } from "../api";
import { type Choice, type LetterFilter, useNewLetters } from "./api";
import { isBlocked } from "./obstacles";
import { SendToInput } from "./SendToInput";
import { useDiscard } from "./useDiscard";

interface Props {
  kind: Kind;
  id: string;
  letters: readonly Letter[];
  selected: ReadonlySet<number>;
  filter: LetterFilter;
  onReplay: (choice: Choice) => void;
  onDone: () => void;
}

/** What can be done with the letters that were chosen, or with all that the filter finds. */
export function LettersToolbar({ kind, id, letters, selected, filter, onReplay, onDone }: Props) {
  const fresh = useNewLetters(kind, id);
  const { ask, pending } = useDiscard(kind, id);
  const chosen = letters.filter((each) => selected.has(each.offset));
  const offsets = chosen.map((each) => each.offset);
  const discardable = chosen.filter((each) => each.state !== "discarded").map((each) => each.offset);
  const narrowed = filter.step !== null || filter.code !== null || filter.contains !== "";
  const isReplayable = filter.state !== "discarded" && filter.state !== "replaying";
  return (
    <Group gap="xs">
      {chosen.length > 0 ? (
        <>
          <Text size="sm">{chosen.length} selected</Text>
          <Button
            size="xs"
            leftSection={<IconPlayerPlay size={14} aria-hidden />}
            disabled={chosen.every(isBlocked)}
            onClick={() => onReplay({ offsets })}
          >
            Replay
          </Button>
          <SendToInput kind={kind} id={id} letters={chosen} onDone={onDone} size="xs" />
          <Button
            size="xs"
            variant="default"
            leftSection={<IconTrash size={14} aria-hidden />}
            loading={pending}
            disabled={discardable.length === 0}
            onClick={() => ask(discardable, onDone)}
          >
            Discard
          </Button>
        </>
      ) : (
        <Button
          size="xs"
          leftSection={<IconPlayerPlay size={14} aria-hidden />}
          disabled={!isReplayable || (filter.state !== "replayed" && fresh.data === 0)}
          onClick={() => onReplay({ filter })}
        >
          {filter.state === "replayed"
            ? "Replay these again"
            : narrowed
              ? "Replay all new letters that match"
              : "Replay all new letters"}
        </Button>
      )}
    </Group>
  );
}
