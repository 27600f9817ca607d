import { Button, Group, Modal, Stack, Text } from "@mantine/core";
import { useEffect } from "react";
import { useBlocker } from "react-router";
import type { Work } from "./useWorkshop";

/** Asks before what was not saved is left behind. */
export function LeaveGuard({ work }: { work: Work }) {
  const { isChanged, isSaved } = work;
  const blocker = useBlocker(
    ({ currentLocation, nextLocation }) =>
      isChanged && !isSaved.current && currentLocation.pathname !== nextLocation.pathname,
  );
  useEffect(() => {
    if (!isChanged) return undefined;
    const ask = (event: BeforeUnloadEvent) => {
      if (!isSaved.current) event.preventDefault();
    };
    window.addEventListener("beforeunload", ask);
    return () => window.removeEventListener("beforeunload", ask);
  }, [isChanged, isSaved]);
  if (blocker.state !== "blocked") return null;
  return (
    <Modal
      opened
      onClose={blocker.reset}
      title="It is not saved yet"
      closeButtonProps={{ "aria-label": "Close" }}
    >
      <Stack>
        <Text size="sm">
          The draft stays in this tab of the browser until you close it: you find it here when you come back.
        </Text>
        <Group justify="flex-end">
          <Button
            variant="subtle"
            color="red"
            onClick={() => {
              isSaved.current = true; // so that nothing writes it again
              work.forget();
              blocker.proceed();
            }}
          >
            Discard the draft
          </Button>
          <Button variant="default" onClick={blocker.proceed}>
            Leave, keep the draft
          </Button>
          <Button data-autofocus onClick={blocker.reset}>
            Stay
          </Button>
        </Group>
      </Stack>
    </Modal>
  );
}
