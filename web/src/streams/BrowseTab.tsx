import { ActionIcon, Button, Group, Select, Stack, Text, Tooltip } from "@mantine/core";
import { IconChevronLeft, IconChevronRight, IconChevronsLeft, IconChevronsRight } from "@tabler/icons-react";
import { type ComponentType, type FormEvent, useState } from "react";
import { useSearchParams } from "react-router";
import { moment } from "#/components/format";
import { Empty, Loading } from "#/components/Page";
import { Failure } from "#/components/Problems";
import { PositionInput } from "#/flows/PositionInput";
import { type EventPage, type Stats, type StreamEvent, useEvents } from "./api";
import { EventList } from "./EventList";
import type { Line } from "./tailing";
import type { User } from "./users";

const SIZES = ["20", "50", "200", "1000"];

/** Events page by page, from an offset or a moment on. */
export function BrowseTab({ id, stats, readers }: { id: string; stats: Stats; readers: readonly User[] }) {
  const [address, setAddress] = useSearchParams();
  const limit = Number(address.get("limit")) || 50;
  const position = address.get("from");
  const page = useEvents(id, position === null ? { last: limit, limit } : { position, limit });
  const go = (from: string | null, size = limit) => {
    const next = new URLSearchParams({ tab: "browse" });
    if (from !== null) next.set("from", from);
    if (size !== 50) next.set("limit", String(size));
    setAddress(next, { replace: true });
  };
  const first = page.data?.events[0]?.offset ?? page.data?.next ?? stats.next;
  return (
    <Stack gap="sm">
      <Group align="flex-end" justify="space-between">
        <From key={position} position={position} go={go} />
        <Group gap={4} align="flex-end">
          <Select
            label="Events per page"
            data={SIZES}
            value={String(limit)}
            onChange={(next) => go(position, Number(next ?? 50))}
            allowDeselect={false}
            w={120}
            mr="xs"
          />
          <Step
            label="First events"
            icon={IconChevronsLeft}
            off={first <= stats.first}
            go={() => go("earliest")}
          />
          <Step
            label="Older events"
            icon={IconChevronLeft}
            off={first <= stats.first}
            go={() => go(`offset:${Math.max(stats.first, first - limit)}`)}
          />
          <Step
            label="Newer events"
            icon={IconChevronRight}
            off={(page.data?.next ?? stats.next) >= stats.next}
            go={() => go(`offset:${page.data?.next}`)}
          />
          <Step label="Last events" icon={IconChevronsRight} off={position === null} go={() => go(null)} />
        </Group>
      </Group>
      <Failure error={page.error} />
      {page.isPending && <Loading />}
      {page.data && <Shown page={page.data} readers={readers} />}
    </Stack>
  );
}

/** Where to begin, as a person says it. */
function From({ position, go }: { position: string | null; go: (from: string | null) => void }) {
  const [draft, setDraft] = useState(position ?? "end");
  const submit = (event: FormEvent) => {
    event.preventDefault();
    go(draft === "" || draft === "end" ? null : draft);
  };
  return (
    <Group component="form" align="flex-end" gap="xs" onSubmit={submit}>
      <PositionInput
        label="From"
        value={draft}
        ways={["end", "earliest", "offset", "time"]}
        onChange={setDraft}
      />
      <Button type="submit" variant="default">
        Go
      </Button>
    </Group>
  );
}

interface StepProps {
  label: string;
  icon: ComponentType<{ size?: number }>;
  off: boolean;
  go: () => void;
}

function Step({ label, icon: Icon, off, go }: StepProps) {
  return (
    <Tooltip label={label}>
      <ActionIcon variant="default" size={36} aria-label={label} disabled={off} onClick={go}>
        <Icon size={18} />
      </ActionIcon>
    </Tooltip>
  );
}

function Shown({ page, readers }: { page: EventPage; readers: readonly User[] }) {
  const events = page.events as StreamEvent[];
  const lines: Line[] = [
    ...(page.gap ? [{ at: page.gap.first, gap: page.gap }] : []),
    ...events.map((event) => ({ at: event.offset, event })),
  ];
  if (lines.length === 0) {
    return (
      <Empty title="No events here">
        The stream has no events from this position on. Choose an earlier position, or watch for new events
        under Live.
      </Empty>
    );
  }
  const [oldest, newest] = [events[0], events.at(-1)];
  return (
    <>
      {oldest && newest && (
        <Text size="sm" c="dimmed" role="status">
          Offsets {oldest.offset} to {newest.offset}, appended {moment(oldest.time)} to {moment(newest.time)}
        </Text>
      )}
      <EventList lines={lines} readers={readers} label="Events, oldest first" />
    </>
  );
}
