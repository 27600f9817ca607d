import { Button, Group, Menu, SegmentedControl, Stack, Text } from "@mantine/core";
import { IconDownload } from "@tabler/icons-react";
import { lazy, Suspense, useMemo, useState } from "react";
import { count, plural } from "#/components/format";
import { Loading } from "#/components/Page";
import { csvOf, jsonLinesOf } from "#/components/rowFiles";
import { saveFile } from "#/documents/content";
import type { QueryResult } from "./api";
import { ResultGrid } from "./ResultGrid";

const ResultChart = lazy(() => import("./ResultChart"));

/** The rows that a query has found, as a grid or as a chart. */
export function Result({ result, limit }: { result: QueryResult; limit: number }) {
  const [view, setView] = useState("grid");
  const names = useMemo(() => result.columns.map(({ name }) => name), [result]);
  const { rows, truncated } = result;
  return (
    <Stack gap="xs" component="section" aria-label="Result">
      <Group justify="space-between" gap="xs">
        <Group gap="sm">
          <SegmentedControl
            aria-label="Result as"
            size="xs"
            value={view}
            onChange={setView}
            data={[
              { value: "grid", label: "Rows" },
              { value: "chart", label: "Chart" },
            ]}
          />
          <Text size="sm" c={truncated ? "orange" : "dimmed"}>
            {truncated
              ? `The first ${plural(rows.length, "row")}. The query finds more: ${
                  rows.length < limit ? "a result has up to 16 MiB" : `the limit is ${count(limit)}`
                }.`
              : plural(rows.length, "row")}
          </Text>
        </Group>
        <Menu position="bottom-end">
          <Menu.Target>
            <Button variant="default" size="xs" leftSection={<IconDownload size={14} />}>
              Download {plural(rows.length, "row")}
            </Button>
          </Menu.Target>
          <Menu.Dropdown>
            <Menu.Item onClick={() => saveFile("query.csv", csvOf(names, rows), "text/csv")}>CSV</Menu.Item>
            <Menu.Item
              onClick={() => saveFile("query.jsonl", jsonLinesOf(names, rows), "application/x-ndjson")}
            >
              JSON lines
            </Menu.Item>
          </Menu.Dropdown>
        </Menu>
      </Group>
      {view === "grid" ? (
        <ResultGrid result={result} />
      ) : (
        <Suspense fallback={<Loading />}>
          <ResultChart result={result} />
        </Suspense>
      )}
    </Stack>
  );
}
