import { Button, Group, Text } from "@mantine/core";
import { count, moment, plural } from "#/components/format";
import { Empty } from "#/components/Page";
import type { EventPage, Stats, StreamEvent } from "./api";
import { EventList } from "./EventList";
import type { Go } from "./Paging";
import type { Line } from "./tailing";
import type { User } from "./users";

interface Props {
  page: EventPage;
  events: readonly StreamEvent[];
  readers: readonly User[];
  /** The fields that are shown; none: the whole event. */
  columns: readonly string[];
  limit: number;
  stats: Stats;
  /** Whether the page was read from the end of the stream back. */
  backward: boolean;
  filtered: boolean;
  go: Go;
}

/** A page of events, and how far it was searched. */
export function EventPageView(props: Props) {
  const { page, events, readers, columns, filtered } = props;
  const lines: Line[] = [
    ...(page.gap ? [{ at: page.gap.first, gap: page.gap }] : []),
    ...events.map((event) => ({ at: event.offset, event })),
  ];
  return (
    <>
      <Status {...props} />
      {lines.length > 0 ? (
        <EventList lines={lines} readers={readers} columns={columns} label="Events, oldest first" />
      ) : (
        <Empty title={filtered ? "No matching events" : "No events here"}>
          {filtered
            ? `None of the ${plural(page.searched, "event")} that were searched meets the filter.`
            : "The stream has no events in this range. Choose another range, or watch for new events under Live."}
        </Empty>
      )}
    </>
  );
}

function Status({ page, events, limit, stats, backward, filtered, go }: Props) {
  const [oldest, newest] = [events[0], events.at(-1)];
  const isCut = backward ? page.first > stats.first : page.next < page.end;
  const isStopped = filtered && isCut && events.length < limit;
  const further = backward
    ? { from: null, to: `offset:${page.first}` }
    : { from: `offset:${page.next}`, to: page.end < stats.next ? `offset:${page.end}` : null };
  return (
    <Group gap="xs">
      <Text size="sm" c="dimmed" role="status">
        {oldest &&
          newest &&
          `Offsets ${oldest.offset} to ${newest.offset}, appended ${moment(oldest.time)} to ${moment(newest.time)}. `}
        {filtered &&
          `${plural(events.length, "match")} in ${plural(page.searched, "event")}${
            isStopped
              ? `, searched ${backward ? "back " : ""}to offset ${backward ? page.first : page.next}`
              : ""
          }. `}
        {isStopped && `One search reads up to ${count(200_000)} events or takes 5 s.`}
      </Text>
      {isStopped && (
        <Button size="compact-sm" variant="light" onClick={() => go(further)}>
          Search further
        </Button>
      )}
    </Group>
  );
}
