import { Text } from "@mantine/core";
import { modals } from "@mantine/modals";
import type { Kind } from "#/api/kinds";
import { plural } from "#/components/format";
import { done, failed } from "#/components/notify";
import { useLetterActions } from "./api";

/** Asks, then gives letters up; it can be undone. */
export function useDiscard(kind: Kind, id: string) {
  const { discard, restore } = useLetterActions(kind, id);
  const run = (offsets: readonly number[], onDone?: () => void) =>
    discard.mutate(offsets, {
      onSuccess: () => {
        onDone?.();
        done(`${named(offsets)} discarded.`, () =>
          restore.mutate(offsets, {
            onError: (error) => failed("Could not restore the letters", error),
          }),
        );
      },
      onError: (error) => failed("Some letters were not discarded", error),
    });
  const ask = (offsets: readonly number[], onDone?: () => void) =>
    modals.openConfirmModal({
      title: `Discard ${named(offsets).toLowerCase()}?`,
      closeButtonProps: { "aria-label": "Close" },
      children: (
        <Text size="sm">
          Discarded letters are skipped by replays. They stay in the dead-letter stream and can be restored.
        </Text>
      ),
      labels: { confirm: "Discard", cancel: "Keep" },
      confirmProps: { color: "red" },
      onConfirm: () => run(offsets, onDone),
    });
  return { ask, pending: discard.isPending };
}

const named = (offsets: readonly number[]) =>
  offsets.length === 1 ? `Letter ${offsets[0]}` : plural(offsets.length, "letter");
