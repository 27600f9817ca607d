import { Badge, Group, Tabs } from "@mantine/core";
import { useState } from "react";
import type { Schemas } from "#/api/client";
import type { Place } from "#/api/kinds";
import { CaseList } from "./CaseList";
import { type Case, casesOf, type Tested } from "./cases";
import { useKept } from "./kept";
import { textOfEvents } from "./samples";
import { TryTab } from "./TryTab";
import { testable } from "./testable";
import classes from "./testing.module.css";

export interface TestPanelProps {
  document: object;
  place: Place;
  /** The columns after the source and after each step, as far as they are known; without them they are asked for. */
  steps?: Schemas["StepSchema"][];
  /** Puts other test cases into the document; without it they can be run only. */
  onCases?: (cases: Case[]) => void;
  /** The id of the step to show first. */
  selected?: string;
  /** Takes the result of each run of the document as it is now. */
  onTested?: (tested: Tested) => void;
  /** Shows the place of the document that something is wrong with. */
  onPick?: (path: string) => void;
}

/** Tries a document on sample events, step by step, and runs its own tests. */
export default function TestPanel({
  document,
  place,
  steps,
  onCases,
  selected,
  onTested,
  onPick,
}: TestPanelProps) {
  const [tab, setTab] = useState<string | null>("try");
  const [kept, keep] = useKept(nameOf(document, place));
  const cases = casesOf(document);
  return (
    <Tabs value={tab} onChange={setTab} className={classes.panel} variant="outline" keepMounted>
      <Tabs.List aria-label="Ways to test">
        <Tabs.Tab value="try">Try</Tabs.Tab>
        <Tabs.Tab value="cases">
          <Group gap={6} wrap="nowrap">
            Test cases
            {cases.length > 0 && (
              <Badge size="sm" variant="default" circle={cases.length < 10}>
                {cases.length}
              </Badge>
            )}
          </Group>
        </Tabs.Tab>
      </Tabs.List>
      <Tabs.Panel value="try" pt="sm">
        <TryTab
          document={document}
          place={place}
          steps={steps}
          cases={cases}
          kept={kept}
          onKeep={keep}
          selected={selected}
          onTested={onTested}
          onPick={onPick}
          onSaveCase={
            onCases &&
            ((saved) => {
              const at = cases.findIndex((each) => each.name === saved.name);
              onCases(at < 0 ? [...cases, saved] : cases.with(at, saved));
              setTab("cases");
            })
          }
        />
      </Tabs.Panel>
      <Tabs.Panel value="cases" pt="sm">
        <CaseList
          document={testable(document, place)}
          cases={cases}
          onCases={onCases}
          onPick={onPick}
          onTry={({ input, given }) => {
            const answers = Object.entries(given ?? {}).map(([id, each]) => [
              id,
              JSON.stringify(each, null, 2),
            ]);
            keep({
              text: textOfEvents(input as unknown[]),
              format: "json",
              given: Object.fromEntries(answers) as Record<string, string>,
            });
            setTab("try");
          }}
        />
      </Tabs.Panel>
    </Tabs>
  );
}

/** What the samples of a document are kept under. */
function nameOf(document: object, place: Place): string {
  const { metadata } = document as { metadata?: { name?: unknown } };
  return `${place}.${String(metadata?.name ?? "")}`;
}
