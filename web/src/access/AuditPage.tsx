import { Autocomplete, Button, Group, Text } from "@mantine/core";
import { useDebouncedValue } from "@mantine/hooks";
import { IconFilterOff } from "@tabler/icons-react";
import { useState } from "react";
import { useSearchParams } from "react-router";
import { Empty, Loading, Page } from "#/components/Page";
import { Failure } from "#/components/Problems";
import { AuditDrawer } from "./AuditDrawer";
import { AuditTable } from "./AuditTable";
import { type AuditFilter, useAudit } from "./api";
import type { AuditEntry } from "./types";

const FIELDS: { name: keyof AuditFilter; label: string; example: string }[] = [
  { name: "user", label: "User", example: "anna" },
  { name: "action", label: "Action", example: "pipeline.update" },
  { name: "target", label: "Target", example: "pipeline/orders" },
];

/** Who has changed what, newest first, for admins. */
export default function AuditPage() {
  const { filter, change, clear } = useFilter();
  const [asked] = useDebouncedValue(filter, 250);
  // The entries at which the pages begin that led here, for each filter anew.
  const key = JSON.stringify(asked);
  const [trail, setTrail] = useState<{ key: string; pages: number[] }>({ key, pages: [] });
  const pages = trail.key === key ? trail.pages : [];
  const found = useAudit(asked, pages.at(-1) ?? null);
  const [opened, setOpened] = useState<AuditEntry | null>(null);
  const isFiltered = Object.values(filter).some((value) => value !== "");
  return (
    <Page
      title="Audit log"
      about="Logins and every change to documents, flows, users and tokens, newest first."
    >
      <Group gap="sm" align="flex-end" role="search">
        {FIELDS.map(({ name, label, example }) => (
          <Autocomplete
            key={name}
            label={label}
            placeholder={example}
            style={{ flex: "0 1 200px", minWidth: 150 }}
            data={suggested(found.data?.entries ?? [], name)}
            value={filter[name]}
            onChange={(value) => change({ [name]: value })}
          />
        ))}
        {isFiltered && (
          <Button variant="subtle" onClick={clear} leftSection={<IconFilterOff size={16} />}>
            Clear filters
          </Button>
        )}
      </Group>
      <Failure error={found.error} title="The audit log could not be loaded" />
      {found.data === undefined ? (
        !found.error && <Loading what="Loading the audit log" />
      ) : found.data.entries.length === 0 ? (
        <Empty title="No entries">
          {isFiltered ? "No entry has exactly these values." : "Nothing has been changed so far."}
        </Empty>
      ) : (
        <AuditTable entries={found.data.entries} onOpen={setOpened} />
      )}
      <Pager
        page={pages.length + 1}
        next={found.data?.next ?? null}
        onNewer={() => setTrail({ key, pages: pages.slice(0, -1) })}
        onOlder={(next) => setTrail({ key, pages: [...pages, next] })}
      />
      <AuditDrawer entry={opened} onClose={() => setOpened(null)} />
    </Page>
  );
}

/** The values of a field among the entries in sight. */
const suggested = (entries: readonly AuditEntry[], name: keyof AuditFilter): string[] =>
  [...new Set(entries.map((entry) => entry[name] ?? ""))].filter(Boolean).sort();

/** The filter, which lives in the address: it can be sent to somebody. */
function useFilter() {
  const [address, setAddress] = useSearchParams();
  const filter = Object.fromEntries(
    FIELDS.map(({ name }) => [name, address.get(name) ?? ""]),
  ) as unknown as AuditFilter;
  const change = (part: Partial<AuditFilter>) => {
    const given = Object.entries({ ...filter, ...part }).filter(([, value]) => value !== "");
    setAddress(new URLSearchParams(given), { replace: true });
  };
  return { filter, change, clear: () => setAddress({}, { replace: true }) };
}

interface PagerProps {
  page: number;
  next: number | null;
  onNewer: () => void;
  onOlder: (next: number) => void;
}

function Pager({ page, next, onNewer, onOlder }: PagerProps) {
  if (page === 1 && next === null) return null;
  return (
    <Group gap="xs">
      <Button size="xs" variant="default" disabled={page === 1} onClick={onNewer}>
        Newer
      </Button>
      <Text size="sm" c="dimmed" role="status">
        page {page}
      </Text>
      <Button
        size="xs"
        variant="default"
        disabled={next === null}
        onClick={() => next !== null && onOlder(next)}
      >
        Older
      </Button>
    </Group>
  );
}
