import { Badge, Code, Tabs, Text } from "@mantine/core";
import { type ReactNode, useMemo } from "react";
import { useParams, useSearchParams } from "react-router";
import { ApiError } from "#/api/client";
import { useDocument } from "#/api/documents";
import { type AnyDocument, KINDS } from "#/api/kinds";
import { useStreamPulse } from "#/api/overview";
import { useAllowed } from "#/api/session";
import { Loading, Page } from "#/components/Page";
import { Failure } from "#/components/Problems";
import { TabLine } from "#/components/TabLine";
import { contentOf, yamlOf } from "#/documents/content";
import { type Stats, useStats } from "./api";
import { BrowseTab } from "./BrowseTab";
import { OverviewTab } from "./OverviewTab";
import { ProduceTab } from "./ProduceTab";
import { ReadersTab } from "./ReadersTab";
import { StreamActions } from "./StreamActions";
import { TailTab } from "./TailTab";
import { usersOf } from "./users";

/** The page of a stream: what is in it, what comes in, who uses it. */
export default function StreamPage() {
  const { id = "" } = useParams();
  const document = useDocument(KINDS.Stream, id);
  const stats = useStats(id);
  // Inputs of pipelines and dead letters are streams without a document of their own.
  const isMade =
    document.error instanceof ApiError && document.error.status === 404 && stats.data !== undefined;
  const title = document.data?.name ?? id;
  if (!stats.data) {
    return (
      <Page title={title}>
        {stats.error ? <Failure error={stats.error} title="Could not load the stream" /> : <Loading />}
      </Page>
    );
  }
  return (
    <Stream
      key={id}
      id={id}
      title={title}
      stats={stats.data}
      document={document.data}
      failure={isMade ? null : document.error}
    />
  );
}

interface Props {
  id: string;
  title: string;
  stats: Stats;
  document: AnyDocument | undefined;
  failure: unknown;
}

function Stream({ id, title, stats, document, failure }: Props) {
  const pulse = useStreamPulse(`Stream/${id}`);
  const { writers, readers } = useMemo(() => usersOf(document?.referrers ?? []), [document]);
  const mayProduce = useAllowed("operator");
  const schema = document?.spec?.schema ?? null;
  const tabs: Tab[] = [
    {
      value: "overview",
      label: "Overview",
      content: <OverviewTab {...{ id, stats, pulse, writers, readers }} />,
    },
    {
      value: "live",
      label: "Live",
      content: <TailTab {...{ id, stats, readers }} inRate={pulse?.in_rate} />,
    },
    { value: "browse", label: "Browse", content: <BrowseTab {...{ id, stats, readers, schema }} /> },
    { value: "readers", label: "Readers", content: <ReadersTab {...{ id, stats, pulse }} /> },
  ];
  if (document && mayProduce) {
    tabs.push({ value: "produce", label: "Produce", content: <ProduceTab id={id} schema={schema} /> });
  }
  if (document) {
    tabs.push({ value: "yaml", label: "YAML", content: <Code block>{yamlOf(contentOf(document))}</Code> });
  }
  return (
    <Page
      title={title}
      beside={
        <>
          <Code>{id}</Code>
          <Badge variant="light" tt="none" color={stats.transient ? "orange" : "teal"}>
            {stats.transient ? "transient" : "durable"}
          </Badge>
          <Badge variant="outline" tt="none" color="gray">
            {schema === null ? "raw" : "typed"}
          </Badge>
        </>
      }
      about={
        <>
          {document?.metadata.description && `${document.metadata.description} `}
          {stats.guarantee} {stats.note}
        </>
      }
      actions={document && <StreamActions document={document} readers={readers} />}
    >
      <Failure error={failure} />
      {schema !== null && (
        <Text size="sm">
          Columns: <Code>{schema}</Code>
        </Text>
      )}
      <Parts tabs={tabs} label={`Sections of stream ${title}`} />
    </Page>
  );
}

interface Tab {
  value: string;
  label: string;
  content: ReactNode;
}

/** The parts of the page; the one that is shown stands in the address. */
function Parts({ tabs, label }: { tabs: Tab[]; label: string }) {
  const [search, setSearch] = useSearchParams();
  const current = tabs.find(({ value }) => value === search.get("tab")) ?? tabs[0]!;
  return (
    <Tabs
      value={current.value}
      onChange={(next) => setSearch(next && next !== tabs[0]!.value ? { tab: next } : {})}
      keepMounted={false}
    >
      <TabLine label={label} current={current.value} tabs={tabs} />
      <Tabs.Panel value={current.value} pt="md">
        {current.content}
      </Tabs.Panel>
    </Tabs>
  );
}
