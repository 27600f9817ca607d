import { Group, Select, Stack, Text, TextInput } from "@mantine/core";
import { useDebouncedValue } from "@mantine/hooks";
import { IconSearch } from "@tabler/icons-react";
import { useState } from "react";
import { usePulse } from "#/api/overview";
import { plural } from "#/components/format";
import { Empty, Loading, Page } from "#/components/Page";
import { Failure } from "#/components/Problems";
import { RangePicker } from "#/components/RangePicker";
import type { TimeRange } from "#/components/timeRange";
import { LEVELS } from "#/flows/logs/levels";
import type { Level } from "#/flows/logs/lines";
import { SHOWN, useLogSearch } from "./api";
import { HitTable } from "./HitTable";

/** The logs of all flows: searched by text, level, flow and time. */
export default function LogsPage() {
  const [text, setText] = useState("");
  const [wanted] = useDebouncedValue(text, 250);
  const [level, setLevel] = useState<Level>("info");
  const [flow, setFlow] = useState<string | null>(null);
  const [range, setRange] = useState<TimeRange>({ minutes: 60 });
  const { flows } = usePulse();
  const found = useLogSearch({ text: wanted, level, flow, range });
  const names = [...flows.values()].map(({ key, kind, name }) => ({
    value: key,
    label: `${name} (${kind.toLowerCase()})`,
  }));
  return (
    <Page title="Logs" about="Starts and stops, failures, dead letters and script output of all flows.">
      <Stack gap="sm">
        <Group gap="xs" align="flex-end">
          <TextInput
            label="Find"
            placeholder="text in a line"
            leftSection={<IconSearch size={14} aria-hidden />}
            value={text}
            onChange={(event) => setText(event.currentTarget.value)}
          />
          <Select
            label="Level"
            data={LEVELS}
            value={level}
            onChange={(next) => next && setLevel(next as Level)}
            allowDeselect={false}
            w={190}
          />
          <Select
            label="Flow"
            placeholder="All flows"
            data={names}
            value={flow}
            onChange={setFlow}
            searchable
            clearable
            nothingFoundMessage="No matching flow"
            w={230}
          />
          <RangePicker range={range} onChange={setRange} />
        </Group>
        <Failure error={found.error} title="Could not search the logs" />
        {!found.data ? (
          !found.error && <Loading what="Searching the logs" />
        ) : found.data.lines.length === 0 ? (
          <Empty title="No matching lines">Use a longer time range, a lower level or another text.</Empty>
        ) : (
          <HitTable hits={found.data.lines} />
        )}
        {found.data && (
          <Text size="xs" c="dimmed" role="status">
            {plural(found.data.lines.length, "line")}, newest first
            {found.data.lines.length === SHOWN && `; only the newest ${SHOWN} are shown`}
            {!found.data.complete && ". The search took too long: choose a flow to search its whole log"}.
          </Text>
        )}
      </Stack>
    </Page>
  );
}
