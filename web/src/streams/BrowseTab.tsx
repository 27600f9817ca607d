import { Button, Group, MultiSelect, Select, Stack } from "@mantine/core";
import { useLocalStorage } from "@mantine/hooks";
import { type FormEvent, useMemo, useState } from "react";
import { useSearchParams } from "react-router";
import { problemsOf } from "#/api/client";
import { Loading } from "#/components/Page";
import { Problems } from "#/components/Problems";
import { PositionInput } from "#/flows/PositionInput";
import { type Stats, type StreamEvent, useEvents, type Where } from "./api";
import { DownloadMenu } from "./DownloadMenu";
import { EventPageView } from "./EventPageView";
import { FilterBar } from "./FilterBar";
import { contentFields, filterFields } from "./fields";
import { Paging } from "./Paging";
import type { User } from "./users";

const SIZES = ["20", "50", "200", "1000"];

interface Props {
  id: string;
  stats: Stats;
  readers: readonly User[];
  schema: string | null;
}

/** What the address asks for. */
interface Asked {
  from: string | null;
  to: string | null;
  where: string;
  limit: number;
}

/** Events page by page: of a range of offsets or times, and those that meet a filter. */
export function BrowseTab({ id, stats, readers, schema }: Props) {
  const [address, setAddress] = useSearchParams();
  const asked: Asked = {
    from: address.get("from"),
    to: address.get("to"),
    where: address.get("where") ?? "",
    limit: Number(address.get("limit")) || 50,
  };
  const { from, to, where, limit } = asked;
  const go = (change: Partial<Asked>) => {
    const next = { ...asked, ...change };
    const written = new URLSearchParams({ tab: "browse" });
    if (next.from !== null) written.set("from", next.from);
    if (next.to !== null) written.set("to", next.to);
    if (next.where !== "") written.set("where", next.where);
    if (next.limit !== 50) written.set("limit", String(next.limit));
    setAddress(written, { replace: true });
  };
  const range: Pick<Where, "to" | "where"> = { to: to ?? undefined, where: where || undefined };
  const page = useEvents(
    id,
    from === null ? { ...range, last: limit, limit } : { ...range, position: from, limit },
  );
  const events = useMemo(() => (page.data?.events ?? []) as StreamEvent[], [page.data]);
  const [columns, setColumns] = useLocalStorage<string[]>({
    key: `penstock.columns.${id}`,
    defaultValue: [],
  });
  const choices = useMemo(
    () => [...new Set([...contentFields(schema, events), ...columns])],
    [schema, events, columns],
  );
  const problems = page.error ? problemsOf(page.error) : [];
  const inFilter = problems.find(({ path }) => path === "where");
  return (
    <Stack gap="sm">
      <Group align="flex-end" justify="space-between">
        <Range key={`${from} ${to}`} from={from} to={to} onRange={go} />
        <Group gap={4} align="flex-end">
          <Select
            label="Events per page"
            data={SIZES}
            value={String(limit)}
            onChange={(next) => go({ limit: Number(next ?? 50) })}
            allowDeselect={false}
            w={140}
            mr="xs"
          />
          <Paging
            page={page.data}
            stats={stats}
            limit={limit}
            from={from}
            to={to}
            go={go}
            filtered={where !== ""}
          />
        </Group>
      </Group>
      <Group align="flex-start" justify="space-between" gap="xs">
        <FilterBar
          where={where}
          onWhere={(next) => go({ where: next })}
          fields={filterFields(schema, events)}
          error={inFilter && [inFilter.message, inFilter.hint].filter(Boolean).join(": ")}
        />
        <MultiSelect
          aria-label="Columns"
          placeholder={columns.length === 0 ? "Columns: the whole event" : undefined}
          data={choices}
          value={columns}
          onChange={setColumns}
          searchable
          clearable
          style={{ flex: "0 1 300px" }}
        />
        <DownloadMenu
          id={id}
          range={{ ...range, position: from ?? undefined }}
          fields={columns.length > 0 ? columns : contentFields(schema, [])}
        />
      </Group>
      {!inFilter && <Problems problems={problems} title="Could not read the events" />}
      {page.isPending && <Loading />}
      {page.data && !page.error && (
        <EventPageView
          page={page.data}
          events={events}
          readers={readers}
          columns={columns}
          limit={limit}
          stats={stats}
          backward={from === null}
          filtered={where !== ""}
          go={go}
        />
      )}
    </Stack>
  );
}

interface RangeProps {
  from: string | null;
  to: string | null;
  onRange: (change: Pick<Asked, "from" | "to">) => void;
}

/** Where to begin and to end, as a person says it. */
function Range({ from, to, onRange }: RangeProps) {
  const [begin, setBegin] = useState(from ?? "newest");
  const [end, setEnd] = useState(to ?? "end");
  const submit = (event: FormEvent) => {
    event.preventDefault();
    const position = (text: string) => (text === "" || text === "newest" || text === "end" ? null : text);
    onRange({ from: position(begin), to: position(end) });
  };
  return (
    <Group component="form" align="flex-end" gap="xs" onSubmit={submit}>
      <PositionInput
        label="From"
        value={begin}
        ways={["newest", "earliest", "offset", "time"]}
        onChange={setBegin}
      />
      <PositionInput label="To" value={end} ways={["end", "offset", "time"]} onChange={setEnd} />
      <Button type="submit" variant="default">
        Go
      </Button>
    </Group>
  );
}
