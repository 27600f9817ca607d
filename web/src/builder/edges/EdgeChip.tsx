import { Popover, Text, UnstyledButton, VisuallyHidden } from "@mantine/core";
import { useContext, useState } from "react";
import { count, plural, rate } from "#/components/format";
import classes from "../builder.module.css";
import { columnsAfter } from "../check";
import { useBuilder } from "../context";
import { EdgeEvents } from "./EdgeEvents";
import { LiveContext } from "./live";
import { countAt, ratesAt, type Spot, testedAt } from "./passing";
import { Sparkline } from "./Sparkline";

/** What passes an edge: the events of the last test run, or of the running flow, or else the columns. */
export function EdgeChip({ spot }: { spot: Spot }) {
  const { check, tested } = useBuilder();
  const samples = useContext(LiveContext);
  const [isOpen, setOpen] = useState(false);
  const columns = columnsAfter(check, spot.after);
  const events = tested ? testedAt(tested, spot) : undefined;
  const passed = countAt(samples.at(-1)?.ops ?? null, spot);
  const rates = ratesAt(samples, spot);
  const name = spot.sink ? `${spot.after.id} to ${spot.sink.id}` : spot.after.id;
  const text = events
    ? plural(events.length, "event")
    : passed !== undefined
      ? count(passed)
      : columns
        ? plural(columns.length, "column")
        : null;
  if (text === null) return null;
  return (
    <Popover opened={isOpen} onChange={setOpen} withinPortal shadow="md" position="bottom" trapFocus>
      <Popover.Target>
        <UnstyledButton
          className={classes.chip}
          data-tested={events !== undefined || undefined}
          onClick={() => setOpen(!isOpen)}
        >
          <VisuallyHidden>Events after {name}: </VisuallyHidden>
          {text}
          {rates.length > 1 && (
            <>
              <Sparkline values={rates} />
              <Text span size="10px" c="dimmed">
                {rate(rates.at(-1))}
              </Text>
            </>
          )}
        </UnstyledButton>
      </Popover.Target>
      <Popover.Dropdown p="sm" maw="min(640px, 92vw)">
        {isOpen && (
          <EdgeEvents spot={spot} columns={columns ?? []} events={events} onClose={() => setOpen(false)} />
        )}
      </Popover.Dropdown>
    </Popover>
  );
}
