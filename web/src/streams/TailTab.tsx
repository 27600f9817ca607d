import { Button, Group, Stack, Text, TextInput } from "@mantine/core";
import { useDebouncedValue } from "@mantine/hooks";
import { IconFilter, IconPlayerPause, IconPlayerPlay, IconTrash } from "@tabler/icons-react";
import { useState } from "react";
import { count, plural, rate } from "#/components/format";
import { Empty } from "#/components/Page";
import type { Stats } from "./api";
import { EventList } from "./EventList";
import { MOST, shows } from "./tailing";
import type { User } from "./users";
import { useTail } from "./useTail";

/** Events that are shown at first: what came last before the page was opened. */
const BEFORE = 20;

/** Lines in the page while events come in; all that are kept when it is paused. */
const LIVE = 200;

interface Props {
  id: string;
  stats: Stats;
  readers: readonly User[];
  inRate: number | undefined;
}

/** Events as they come. */
export function TailTab({ id, stats, readers, inRate }: Props) {
  const [from] = useState(Math.max(stats.first, stats.next - BEFORE));
  const [paused, setPaused] = useState(false);
  const [typed, setTyped] = useState("");
  const [filter] = useDebouncedValue(typed, 300);
  const tail = useTail(id, from, filter, paused);
  const lines = tail.lines.filter((line) => shows(line, filter));
  const waiting = paused ? Math.max(0, stats.next - (tail.next ?? from)) : 0;
  return (
    <Stack gap="sm">
      <Group gap="xs">
        <Button
          variant={paused ? "filled" : "default"}
          onClick={() => setPaused(!paused)}
          leftSection={paused ? <IconPlayerPlay size={16} /> : <IconPlayerPause size={16} />}
        >
          {paused ? "Resume" : "Pause"}
        </Button>
        <TextInput
          aria-label="Only events that contain"
          placeholder="Only events that contain…"
          value={typed}
          onChange={({ currentTarget }) => setTyped(currentTarget.value)}
          leftSection={<IconFilter size={16} />}
          style={{ flex: "0 1 320px" }}
        />
        <Button variant="subtle" onClick={tail.clear} leftSection={<IconTrash size={16} />}>
          Clear
        </Button>
        <Text size="sm" c="dimmed" role="status">
          {paused
            ? `Paused. ${plural(waiting, "new event")}.`
            : tail.lost
              ? "The server isn't responding. Reconnecting automatically."
              : `Live, ${rate(inRate ?? 0)}.`}{" "}
          {lines.length >= MOST && `Showing the last ${count(MOST)} events.`}
        </Text>
      </Group>
      {lines.length === 0 ? (
        <Empty title={filter ? "No matching events yet" : "Waiting for events"}>
          {filter
            ? "Events whose JSON contains the text appear here as they arrive. The filter is case-sensitive."
            : "New events appear here as soon as they are appended. Send one under Produce."}
        </Empty>
      ) : (
        <EventList
          lines={paused ? lines : lines.slice(0, LIVE)}
          readers={readers}
          label="Events, newest first"
        />
      )}
    </Stack>
  );
}
