import { ActionIcon, Tooltip } from "@mantine/core";
import { IconChevronLeft, IconChevronRight, IconChevronsLeft, IconChevronsRight } from "@tabler/icons-react";
import type { ComponentType } from "react";
import type { EventPage, Stats } from "./api";

/** Goes to another range of the stream. */
export type Go = (range: { from: string | null; to: string | null }) => void;

interface Props {
  page: EventPage | undefined;
  stats: Stats;
  limit: number;
  from: string | null;
  to: string | null;
  filtered: boolean;
  go: Go;
}

/** The way to other pages of events. */
export function Paging({ page, stats, limit, from, to, filtered, go }: Props) {
  const first = page?.first ?? stats.next;
  const next = page?.next ?? stats.next;
  const isOldest = first <= stats.first;
  // A filter searches backward from here; without one, the offsets of the page before are known.
  const older = filtered
    ? { from: null, to: `offset:${first}` }
    : { from: `offset:${Math.max(stats.first, first - limit)}`, to: null };
  return (
    <>
      <Step
        label="First events"
        icon={IconChevronsLeft}
        off={isOldest}
        go={() => go({ from: "earliest", to: null })}
      />
      <Step label="Older events" icon={IconChevronLeft} off={isOldest} go={() => go(older)} />
      <Step
        label="Newer events"
        icon={IconChevronRight}
        off={next >= stats.next}
        go={() => go({ from: `offset:${next}`, to: from === null ? null : to })}
      />
      <Step
        label="Last events"
        icon={IconChevronsRight}
        off={from === null && to === null}
        go={() => go({ from: null, to: null })}
      />
    </>
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
