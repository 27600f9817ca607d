import { Button, type ButtonProps, Text } from "@mantine/core";
import { modals } from "@mantine/modals";
import { IconSend } from "@tabler/icons-react";
import type { Kind } from "#/api/kinds";
import { plural } from "#/components/format";
import { done, failed } from "#/components/notify";
import type { Letter } from "../api";
import { useLetterActions } from "./api";

interface Props extends ButtonProps {
  kind: Kind;
  id: string;
  letters: readonly Letter[];
  onDone?: () => void;
}

/** Sends the original events of letters to the input of their flow again, after a question. */
export function SendToInput({ kind, id, letters, onDone, ...button }: Props) {
  const { send } = useLetterActions(kind, id);
  const able = letters.filter(({ in_input, state }) => in_input && state === "new");
  const events = plural(able.length, "event");
  const ask = () =>
    modals.openConfirmModal({
      title: `Send ${events} to the input`,
      children: (
        <Text size="sm">
          The original {able.length === 1 ? "event is" : "events are"} appended to the input stream again,
          without edits, and {able.length === 1 ? "runs" : "run"} through all steps. Other readers of the
          stream also receive {able.length === 1 ? "it" : "them"} again.
        </Text>
      ),
      closeButtonProps: { "aria-label": "Close" },
      labels: { confirm: "Send to input", cancel: "Cancel" },
      onConfirm: () =>
        send.mutate(
          able.map((each) => each.offset),
          {
            onSuccess: () => {
              done(`Sent ${events} to the input.`);
              onDone?.();
            },
            onError: (error) => failed("Not sent", error),
          },
        ),
    });
  return (
    <Button
      variant="default"
      leftSection={<IconSend size={14} aria-hidden />}
      loading={send.isPending}
      disabled={able.length === 0}
      title={able.length === 0 ? "The input stream no longer has the original event" : undefined}
      onClick={ask}
      {...button}
    >
      Send to input
    </Button>
  );
}
