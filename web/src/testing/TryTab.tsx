import { Button, Group, Kbd, Stack, Switch, Text } from "@mantine/core";
import { useLocalStorage } from "@mantine/hooks";
import { IconPlayerPlay } from "@tabler/icons-react";
import { useEffect, useMemo } from "react";
import { problemsOf, type Schemas } from "#/api/client";
import type { Place } from "#/api/kinds";
import { useCatalogue } from "#/builder/catalogue";
import { Empty } from "#/components/Page";
import { Problems } from "#/components/Problems";
import type { Case, Tested } from "./cases";
import { GivenForm } from "./GivenForm";
import { answersOf } from "./given";
import type { Kept } from "./kept";
import { RunResult } from "./RunResult";
import { SampleEditor } from "./SampleEditor";
import { SaveCase } from "./SaveCase";
import { detect, readSamples, textOfEvents } from "./samples";
import { isRaw, suggested } from "./suggest";
import { askingSteps, streamOf, testable } from "./testable";
import classes from "./testing.module.css";
import { useColumns } from "./useColumns";
import { useRunKeys } from "./useRunKeys";
import { type Asked, keyOfAsked, useTestRun } from "./useTestRun";

interface Props {
  document: object;
  place: Place;
  steps?: Schemas["StepSchema"][];
  cases: readonly Case[];
  kept: Kept;
  onKeep: (change: Partial<Kept>) => void;
  selected?: string;
  onTested?: (tested: Tested) => void;
  onPick?: (path: string) => void;
  onSaveCase?: (testCase: Case) => void;
}

/** How long one has to pause before a run as one types. */
const PAUSE_MS = 900;

/** Sample events on one side, what becomes of them on the other. */
export function TryTab(props: Props) {
  const { document, place, cases, kept, onKeep, selected, onTested, onPick, onSaveCase } = props;
  const [isLive, setLive] = useLocalStorage({ key: "penstock.test.live", defaultValue: false });
  const { outcome, isRunning, run } = useTestRun();
  const { columns, isAsking } = useColumns(document, place, props.steps);
  const catalogue = useCatalogue();

  const suggestion = useMemo(() => (columns.length > 0 ? textOfEvents(suggested(columns)) : ""), [columns]);
  const text = kept.text ?? suggestion;
  const reading = useMemo(
    () => readSamples(text, kept.format ?? detect(text), isRaw(columns)),
    [text, kept.format, columns],
  );
  const result = outcome?.result ?? null;
  const problems = useMemo(
    () => (outcome?.error ? problemsOf(outcome.error) : (result?.errors ?? [])),
    [outcome, result],
  );
  const asking = askingSteps(document, place, catalogue.data?.processors ?? [], problems);
  const { given, faults } = answersOf(kept.given, asking);
  const asked: Asked | null =
    reading.sent && Object.keys(faults).length === 0
      ? { document: testable(document, place), ...reading.sent, given }
      : null;
  const key = asked && keyOfAsked(asked);
  const isOld = outcome !== null && outcome.key !== key;

  // biome-ignore lint/correctness/useExhaustiveDependencies: told once for each result
  useEffect(() => {
    if (result && !isOld) onTested?.(result);
  }, [result]);
  const start = () => void (asked && run(asked));
  useRunKeys(start);
  // biome-ignore lint/correctness/useExhaustiveDependencies: the key says all that is asked
  useEffect(() => {
    if (!isLive || key === null || key === outcome?.key) return;
    const timer = setTimeout(start, PAUSE_MS);
    return () => clearTimeout(timer);
  }, [isLive, key]);

  return (
    <div className={classes.try}>
      <Stack gap="sm">
        <Group gap="sm">
          <Button
            leftSection={<IconPlayerPlay size={16} />}
            loading={isRunning}
            disabled={asked === null}
            onClick={start}
            rightSection={
              <Kbd size="xs" aria-hidden>
                {"Ctrl ⏎"}
              </Kbd>
            }
          >
            Run
          </Button>
          <Switch
            label="Run as I type"
            checked={isLive}
            onChange={({ currentTarget }) => setLive(currentTarget.checked)}
          />
        </Group>
        <SampleEditor
          text={text}
          format={kept.format}
          reading={reading}
          columns={columns}
          isAsking={isAsking}
          stream={streamOf(document, place)}
          isSuggestion={kept.text === null && suggestion !== ""}
          problems={problems}
          onChange={(next, format) => onKeep({ text: next, format })}
        />
        <GivenForm
          steps={asking}
          given={kept.given}
          faults={faults}
          count={reading.sent && reading.count !== null ? reading.count : 1}
          onChange={(next) => onKeep({ given: next })}
        />
      </Stack>
      <Stack gap="sm" component="section" aria-label="Result" aria-busy={isRunning}>
        {outcome && (
          <Group gap="xs" justify="space-between" mih={26}>
            <Text size="sm" c="dimmed" role="status">
              {isRunning
                ? "Running…"
                : isOld
                  ? "The document or the sample events have changed since this run. Run again."
                  : "Up to date."}
            </Text>
            {onSaveCase && result && (
              <SaveCase tested={result} asked={outcome.asked} cases={cases} onSave={onSaveCase} />
            )}
          </Group>
        )}
        {outcome?.error ? (
          <Problems
            problems={problems}
            title="The test run was rejected"
            onPick={onPick && ((path) => path.startsWith("spec") && onPick(path))}
          />
        ) : null}
        {result && (
          <div className={isOld ? classes.old : undefined}>
            <RunResult tested={result} selected={selected} onPick={onPick} />
          </div>
        )}
        {!outcome && (
          <Empty title={isRunning ? "Running…" : "No results yet"}>
            Run the steps on the sample events to compare the input and output of each step and see the events
            for each sink. Nothing is read from the source, and nothing is written.
          </Empty>
        )}
      </Stack>
    </div>
  );
}
