import { Tabs } from "@mantine/core";
import { lazy, type ReactNode, Suspense } from "react";
import { useSearchParams } from "react-router";
import type { AnyDocument, Kind } from "#/api/kinds";
import { useAllowed } from "#/api/session";
import { Loading } from "#/components/Page";
import { TabLine } from "#/components/TabLine";
import { entranceOf } from "#/ingest/address";
import { canReplay } from "./api";
import { DefinitionTab } from "./DefinitionTab";
import { LetterBadge } from "./letters/LetterBadge";
import { OverviewTab } from "./OverviewTab";

const LettersTab = lazy(() => import("./letters/LettersTab"));
const BatchesTab = lazy(() => import("./batches/BatchesTab"));
const LogsTab = lazy(() => import("./logs/LogsTab"));
const SendPanel = lazy(() => import("#/ingest/SendPanel"));
const RevisionsTab = lazy(() => import("./revisions/RevisionsTab"));
const StoryTab = lazy(() => import("./StoryTab"));
const TestTab = lazy(() => import("./TestTab"));
const YamlTab = lazy(() => import("./YamlTab"));

interface Props {
  kind: Kind;
  document: AnyDocument;
}

interface Tab {
  value: string;
  label: string;
  beside?: ReactNode;
  content: ReactNode;
}

/** The parts of the page; the one that is shown stands in the address. */
export function FlowTabs({ kind, document }: Props) {
  const [search, setSearch] = useSearchParams();
  const tabs = tabsOf(kind, document, useAllowed("operator"));
  const wanted = search.get("tab");
  const current = tabs.find((each) => each.value === wanted) ?? tabs[0]!;
  return (
    <Tabs
      value={current.value}
      onChange={(next) => setSearch(next && next !== tabs[0]!.value ? { tab: next } : {})}
      keepMounted={false}
    >
      <TabLine label={`Sections of ${kind.one} ${document.name}`} current={current.value} tabs={tabs} />
      {tabs.map((each) => (
        <Tabs.Panel key={each.value} value={each.value} pt="md">
          <Suspense fallback={<Loading />}>{each.content}</Suspense>
        </Tabs.Panel>
      ))}
    </Tabs>
  );
}

function tabsOf(kind: Kind, document: AnyDocument, mayTest: boolean): Tab[] {
  const given = { kind, document };
  const history: Tab[] = [
    { value: "revisions", label: "Revisions", content: <RevisionsTab {...given} /> },
    { value: "yaml", label: "YAML", content: <YamlTab document={document} /> },
  ];
  const steps: Tab[] = [
    { value: "story", label: "Trace", content: <StoryTab {...given} /> },
    ...(mayTest ? [{ value: "test", label: "Test", content: <TestTab {...given} /> }] : []),
  ];
  const entrance = mayTest ? entranceOf(document) : null;
  const send: Tab[] = entrance
    ? [{ value: "send", label: "Send", content: <SendPanel {...entrance} /> }]
    : [];
  if (!document.status) {
    const overview = { value: "overview", label: "Overview", content: <DefinitionTab {...given} /> };
    return [overview, ...send, ...history];
  }
  return [
    { value: "overview", label: "Overview", content: <OverviewTab {...given} /> },
    {
      value: "letters",
      label: "Dead letters",
      beside: <LetterBadge {...given} />,
      content: <LettersTab {...given} />,
    },
    { value: "batches", label: "Batches", content: <BatchesTab {...given} /> },
    { value: "logs", label: "Logs", content: <LogsTab {...given} /> },
    ...send,
    ...(canReplay(kind) ? steps : []),
    ...history,
  ];
}
