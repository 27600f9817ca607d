import { Button, Group, Text } from "@mantine/core";
import { notifications } from "@mantine/notifications";
import { problemsOf } from "#/api/client";

const CLOSE = { "aria-label": "Close the message" };

/** Something was done; with `undo`, it can be taken back for some seconds. */
export function done(message: string, undo?: () => void): void {
  const id = crypto.randomUUID();
  notifications.show({
    id,
    color: "teal",
    autoClose: undo ? 10_000 : 4_000,
    closeButtonProps: CLOSE,
    message: (
      <Group justify="space-between" wrap="nowrap">
        <Text size="sm">{message}</Text>
        {undo && (
          <Button
            size="compact-sm"
            variant="light"
            onClick={() => {
              notifications.hide(id);
              undo();
            }}
          >
            Undo
          </Button>
        )}
      </Group>
    ),
  });
}

/** Something was refused, and there is no field to show that at. */
export function failed(title: string, error: unknown): void {
  const [first, ...others] = problemsOf(error);
  const more = others.length > 0 ? ` (and ${others.length} more)` : "";
  notifications.show({
    color: "red",
    title,
    autoClose: 12_000,
    closeButtonProps: CLOSE,
    message: `${first?.message ?? ""}${more}${first?.hint ? `. ${first.hint}` : ""}`,
  });
}
