import { Button, Group, Modal, Stack, Text } from "@mantine/core";
import { type ReactNode, type RefObject, useEffect } from "react";
import { useBlocker } from "react-router";

interface Props {
  isChanged: boolean;
  /** Whether it was saved, or given up, since: known before the next rendering. */
  isDone: RefObject<boolean>;
  title: string;
  children: ReactNode;
  /** How one may leave. The page also offers to stay. */
  ways: readonly Way[];
}

interface Way {
  label: string;
  isDangerous?: boolean;
  onLeave?: () => void;
}

/** Asks before what was not saved is left behind. */
export function LeaveGuard({ isChanged, isDone, title, children, ways }: Props) {
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
    <Modal opened onClose={blocker.reset} title={title} closeButtonProps={{ "aria-label": "Close" }}>
      <Stack>
        <Text size="sm">{children}</Text>
        <Group justify="flex-end">
          {ways.map(({ label, isDangerous, onLeave }) => (
            <Button
              key={label}
              variant={isDangerous ? "subtle" : "default"}
              color={isDangerous ? "red" : undefined}
              onClick={() => {
                onLeave?.();
                blocker.proceed();
              }}
            >
              {label}
            </Button>
          ))}
          <Button data-autofocus onClick={blocker.reset}>
            Stay
          </Button>
        </Group>
      </Stack>
    </Modal>
  );
}
