import { Button, Table, Text } from "@mantine/core";
import { useState } from "react";
import { plural } from "#/components/format";
import classes from "./testing.module.css";
import { type Event, META } from "./trace";

const SHOWN = 20;

/** Events as rows, their fields as columns. */
export function EventTable({ events, label }: { events: readonly Event[]; label: string }) {
  const [shown, setShown] = useState(SHOWN);
  const names = [...new Set(events.flatMap((event) => Object.keys(event)))].filter((name) => name !== META);
  const beside = ["key", "headers"].filter((name) =>
    events.some((event) => metaOf(event)[name] !== undefined),
  );
  if (events.length === 0) {
    return (
      <Text size="sm" c="dimmed">
        No events.
      </Text>
    );
  }
  return (
    <>
      <Table.ScrollContainer
        minWidth={0}
        scrollAreaProps={{ viewportProps: { tabIndex: 0, "aria-label": label } }}
      >
        <Table aria-label={label} className={classes.events} verticalSpacing={4} horizontalSpacing="xs">
          <Table.Thead>
            <Table.Tr>
              {names.map((name) => (
                <Table.Th key={name}>{name}</Table.Th>
              ))}
              {beside.map((name) => (
                <Table.Th key={name} c="dimmed" title={`The ${name} of the event, which is not a column`}>
                  $meta.{name}
                </Table.Th>
              ))}
            </Table.Tr>
          </Table.Thead>
          <Table.Tbody>
            {events.slice(0, shown).map((event, row) => (
              // biome-ignore lint/suspicious/noArrayIndexKey: events have no name, and never move
              <Table.Tr key={row}>
                {names.map((name) => (
                  <Table.Td key={name}>{textOf(event[name])}</Table.Td>
                ))}
                {beside.map((name) => (
                  <Table.Td key={name}>{textOf(metaOf(event)[name])}</Table.Td>
                ))}
              </Table.Tr>
            ))}
          </Table.Tbody>
        </Table>
      </Table.ScrollContainer>
      {events.length > shown && (
        <Button variant="subtle" size="compact-xs" onClick={() => setShown(shown + 100)}>
          Show more of {plural(events.length, "event")}
        </Button>
      )}
    </>
  );
}

const metaOf = (event: Event) => (event[META] ?? {}) as Event;

const LONGEST = 300;

function textOf(value: unknown): string {
  if (value === undefined) return "–";
  const text = typeof value === "string" ? value : JSON.stringify(value);
  return text.length > LONGEST ? `${text.slice(0, LONGEST)} …` : text;
}
