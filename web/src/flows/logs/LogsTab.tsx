import { Button, Group, Select, Stack, Text, TextInput } from "@mantine/core";
import { useDebouncedValue } from "@mantine/hooks";
import { IconPlayerPause, IconPlayerPlay, IconSearch } from "@tabler/icons-react";
import { useMemo, useState } from "react";
import type { AnyDocument, Kind } from "#/api/kinds";
import { plural } from "#/components/format";
import { failed } from "#/components/notify";
import { Empty, Loading } from "#/components/Page";
import { LogLines } from "./LogLines";
import { LEVELS } from "./levels";
import { type Level, MOST_LINES, matching } from "./lines";
import { useLog } from "./useLog";

/** What a flow says of itself, as it is said. */
export default function LogsTab({ kind, document }: { kind: Kind; document: AnyDocument }) {
  const [level, setLevel] = useState<Level>("info");
  const [text, setText] = useState("");
  const [wanted] = useDebouncedValue(text, 150);
  const log = useLog(kind, document.id, level);
  const shown = useMemo(() => matching(log.lines ?? [], wanted), [log.lines, wanted]);
  return (
    <Stack gap="xs">
      <Group gap="xs" align="flex-end">
        <Select
          label="Level"
          data={LEVELS}
          value={level}
          onChange={(next) => next && setLevel(next as Level)}
          allowDeselect={false}
          w={190}
        />
        <TextInput
          label="Find"
          placeholder="text in a line"
          leftSection={<IconSearch size={14} aria-hidden />}
          value={text}
          onChange={(event) => setText(event.currentTarget.value)}
        />
        {log.paused ? (
          <Button leftSection={<IconPlayerPlay size={16} aria-hidden />} onClick={log.resume}>
            {log.held > 0 ? `Resume (${log.held} new)` : "Resume"}
          </Button>
        ) : (
          <Button
            variant="default"
            leftSection={<IconPlayerPause size={16} aria-hidden />}
            onClick={log.pause}
          >
            Pause
          </Button>
        )}
        <Button
          variant="default"
          onClick={() => log.loadMore().catch((error) => failed("Could not load the log", error))}
        >
          Load older lines
        </Button>
      </Group>
      {log.lines === null ? (
        <Loading what="Loading the log" />
      ) : shown.length === 0 ? (
        <Empty title={log.lines.length === 0 ? "No lines yet" : "No matching lines"}>
          Starts and stops, failed attempts and deliveries, dead letters and script output are logged here.
        </Empty>
      ) : (
        <LogLines lines={shown} still={log.paused} />
      )}
      <Text size="xs" c="dimmed">
        {plural(shown.length, wanted ? "matching line" : "line")}; this page shows the last {MOST_LINES}{" "}
        lines.
      </Text>
    </Stack>
  );
}
