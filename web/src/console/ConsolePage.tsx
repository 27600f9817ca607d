import { Anchor, Button, Group, Select, Stack, Text } from "@mantine/core";
import { useSessionStorage } from "@mantine/hooks";
import { IconPlayerPlay, IconPlayerStop } from "@tabler/icons-react";
import { useEffect, useMemo } from "react";
import { useSearchParams } from "react-router";
import { useDocuments } from "#/api/documents";
import { KINDS } from "#/api/kinds";
import { Page } from "#/components/Page";
import { Problems } from "#/components/Problems";
import { LazyCodeEditor } from "#/editors/LazyCodeEditor";
import { problemsIn } from "#/editors/places";
import { useRunKeys } from "#/testing/useRunKeys";
import { HistoryMenu } from "./HistoryMenu";
import { PipelineButton } from "./PipelineButton";
import { Result } from "./Result";
import { tablesIn } from "./references";
import { SavedMenu } from "./SavedMenu";
import { SaveQuery } from "./SaveQuery";
import { lastEvents, tablesOf } from "./tables";
import { useConsole } from "./useConsole";

const ABOUT =
  "Spark SQL over the events that streams hold now. A table is the id of a stream. Queries are read-only and run in a process separate from the flows, two at a time.";

const ROWS = ["100", "1000", "10000"].map((value) => ({
  value,
  label: `${Number(value).toLocaleString("en-US")} rows`,
}));

const TIMES = [
  ["10000", "10 s"],
  ["30000", "30 s"],
  ["60000", "1 min"],
  ["300000", "5 min"],
  ["600000", "10 min"],
].map(([value, label]) => ({ value: value!, label: label! }));

/** Queries streams with SQL. */
export default function ConsolePage() {
  const [address, setAddress] = useSearchParams();
  const [sql, setSql] = useSessionStorage({ key: "penstock.sql", defaultValue: "" });
  const [limits, setLimits] = useSessionStorage({
    key: "penstock.sql.limits",
    defaultValue: { limit: 1000, timeout_ms: 30_000 },
  });
  const streams = useDocuments(KINDS.Stream);
  const tables = useMemo(() => tablesOf(streams.data ?? []), [streams.data]);
  const named = tablesIn(sql).join();
  const columns = useMemo(() => named.split(",").flatMap((id) => tables[id] ?? []), [named, tables]);
  const runner = useConsole();
  const { running, result, problems } = runner;

  // A link from another page brings a query along: it takes the place of the text, once.
  const given = address.get("query");
  useEffect(() => {
    if (given === null) return;
    setSql(given);
    setAddress({}, { replace: true });
  }, [given, setSql, setAddress]);

  const run = (text = sql) => {
    if (text.trim() !== "" && !running) void runner.run(text, limits);
  };
  useRunKeys(() => run());
  const show = (text: string) => {
    setSql(text);
    runner.clear();
  };
  const first = streams.data?.[0]?.id;
  return (
    <Page title="SQL console" about={ABOUT}>
      <Stack gap="xs">
        <LazyCodeEditor
          language="sql"
          label="Query"
          value={sql}
          onChange={(text) => {
            setSql(text);
            runner.touched();
          }}
          tables={tables}
          columns={columns}
          problems={problemsIn(problems)}
          minHeight={132}
          maxHeight={360}
        />
        <Group gap="xs" justify="space-between" align="flex-end">
          <Group gap="xs" align="flex-end">
            {running ? (
              <Button
                color="red"
                variant="light"
                onClick={runner.cancel}
                loading={runner.isCancelling}
                leftSection={<IconPlayerStop size={16} />}
              >
                Cancel
              </Button>
            ) : (
              <Button
                onClick={() => run()}
                disabled={sql.trim() === ""}
                leftSection={<IconPlayerPlay size={16} />}
                title="Ctrl Enter"
              >
                Run
              </Button>
            )}
            <Select
              aria-label="Maximum number of rows"
              data={ROWS}
              value={String(limits.limit)}
              onChange={(value) => setLimits({ ...limits, limit: Number(value) })}
              allowDeselect={false}
              w={130}
            />
            <Select
              aria-label="Time limit"
              data={TIMES}
              value={String(limits.timeout_ms)}
              onChange={(value) => setLimits({ ...limits, timeout_ms: Number(value) })}
              allowDeselect={false}
              w={100}
            />
            <Text size="sm" c="dimmed" role="status">
              {runner.status}
            </Text>
          </Group>
          <Group gap="xs">
            <SavedMenu onPick={show} />
            <HistoryMenu past={runner.past} onPick={show} onClear={runner.forget} />
            <SaveQuery sql={sql} />
            <PipelineButton sql={sql} />
          </Group>
        </Group>
        <Problems problems={problems} title="The query failed" />
        {result && <Result result={result} limit={limits.limit} />}
        {!result && problems.length === 0 && first && sql.trim() === "" && (
          <Text size="sm" c="dimmed">
            For example:{" "}
            <Anchor
              component="button"
              type="button"
              size="sm"
              ff="monospace"
              ta="left"
              onClick={() => setSql(lastEvents(first))}
            >
              {lastEvents(first)}
            </Anchor>
          </Text>
        )}
      </Stack>
    </Page>
  );
}
