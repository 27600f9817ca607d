import { Button, Popover, Stack, Text } from "@mantine/core";
import { IconAlertOctagonFilled, IconAlertTriangle, IconHelp } from "@tabler/icons-react";
import type { ReactNode } from "react";
import classes from "./topology.module.css";

/** What the lines of the graph mean. */
export function Legend() {
  return (
    <Popover position="bottom-end" shadow="md" width={340}>
      <Popover.Target>
        <Button variant="subtle" color="gray" leftSection={<IconHelp size={16} />} px="xs">
          Legend
        </Button>
      </Popover.Target>
      <Popover.Dropdown>
        <Stack gap={6}>
          <Line kind="data" state="well">
            Events; the thicker, the more per second
          </Line>
          <Line kind="dead_letters" state="well">
            Dead letters, or events that came too late
          </Line>
          <Line kind="join" state="well">
            A stream that a step joins with
          </Line>
          <Line kind="definition" state="well">
            A document that describes a part of another
          </Line>
          <Line kind="data" state="failed" sign={<IconAlertOctagonFilled size={14} />}>
            The flow has failed
          </Line>
          <Line kind="data" state="full" sign={<IconAlertTriangle size={14} />}>
            Backpressure: a stream is full, a sink is behind, or the lag grows
          </Line>
          <Text size="sm" c="dimmed" mt={4}>
            A dashed frame is an end that is written inside a pipeline. Point at something to see where its
            events come from and where they go; with the keyboard, use Tab and the arrow keys, and Enter to
            open it.
          </Text>
        </Stack>
      </Popover.Dropdown>
    </Popover>
  );
}

function Line({
  kind,
  state,
  sign,
  children,
}: {
  kind: string;
  state: string;
  sign?: ReactNode;
  children: ReactNode;
}) {
  return (
    <div className={classes.legend}>
      <svg
        width={40}
        height={10}
        className={classes.edge}
        data-kind={kind}
        data-state={state}
        aria-hidden="true"
      >
        <path d="M0 5H40" strokeWidth={2} />
      </svg>
      <span className={classes.sign} data-state={state}>
        {sign}
      </span>
      <Text size="sm">{children}</Text>
    </div>
  );
}
