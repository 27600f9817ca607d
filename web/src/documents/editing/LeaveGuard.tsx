import { Button, Group, Modal, Stack, Text } from "@mantine/core";
import { useEffect } from "react";
import { useBlocker } from "react-router";
import type { Editing } from "./useEditing";

/** Asks before what was not saved is left behind. */
export function LeaveGuard({ editing: { isChanged, isDone } }: { editing: Editing }) {
  const blocker = useBlocker(
    ({ currentLocation, nextLocation }) =>
      isChanged && !isDone.current && currentLocation.pathname !== nextLocation.pathname,
  );
  useEffect(() => {
    if (!isChanged) return undefined;
    const ask = (event: BeforeUnloadEvent) => {
      if (!isDone.current) event.preventDefault();
    };
    window.addEventListener("beforeunload", ask);
    return () => window.removeEventListener("beforeunload", ask);
  }, [isChanged, isDone]);
  if (blocker.state !== "blocked") return null;
  return (
    <Modal
      opened
      onClose={blocker.reset}
      title="Leave without saving?"
      closeButtonProps={{ "aria-label": "Close" }}
    >
      <Stack>
        <Text size="sm">What you have changed on this page would be lost.</Text>
        <Group justify="flex-end">
          <Button variant="default" color="red" onClick={blocker.proceed}>
            Leave
          </Button>
          <Button data-autofocus onClick={blocker.reset}>
            Stay
          </Button>
        </Group>
      </Stack>
    </Modal>
  );
}
