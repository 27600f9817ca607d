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
            Events; thicker lines carry more events per second
          </Line>
          <Line kind="dead_letters" state="well">
            Dead letters or late events
          </Line>
          <Line kind="join" state="well">
            Stream that a step joins with
          </Line>
          <Line kind="definition" state="well">
            Definition used by another document
          </Line>
          <Line kind="data" state="failed" sign={<IconAlertOctagonFilled size={14} />}>
            Failed flow
          </Line>
          <Line kind="data" state="full" sign={<IconAlertTriangle size={14} />}>
            Backpressure: a stream is full, a sink is behind, or the lag grows
          </Line>
          <Text size="sm" c="dimmed" mt={4}>
            A dashed frame is a source or sink configured inside a pipeline. Hover over a document to
            highlight its upstream and downstream path. With the keyboard, use Tab and the arrow keys to move,
            and Enter to open.
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
