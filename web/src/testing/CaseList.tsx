import { Badge, Button, Group, Stack, Text } from "@mantine/core";
import { IconPlayerPlay } from "@tabler/icons-react";
import { problemsOf } from "#/api/client";
import { plural } from "#/components/format";
import { done } from "#/components/notify";
import { Empty } from "#/components/Page";
import { Problems } from "#/components/Problems";
import { CaseCard } from "./CaseCard";
import type { Case } from "./cases";
import { useCaseRuns } from "./useCaseRuns";

interface Props {
  document: Record<string, unknown>;
  cases: readonly Case[];
  /** Puts other test cases into the document; without it they can be run only. */
  onCases?: (cases: Case[]) => void;
  /** Takes the samples of a test case to try them. */
  onTry: (testCase: Case) => void;
  onPick?: (path: string) => void;
}

/** The tests of a document: run one or all, see what differs, rename, delete. */
export function CaseList({ document, cases, onCases, onTry, onPick }: Props) {
  const { runs, isOld, isRunning, isBusy, error, run } = useCaseRuns(document, cases);
  if (cases.length === 0) {
    return (
      <Empty title="No test cases yet">
        Run the document on sample events, then save the result as a test case. Test cases are part of the
        document and catch changes in the behavior of its steps.
      </Empty>
    );
  }
  const current = cases
    .filter((each) => runs[each.name] && !isOld(each))
    .map((each) => runs[each.name]!.result);
  const failures = current.filter((each) => !each.passed).length;
  return (
    <Stack gap="sm">
      <Group justify="space-between">
        <Group gap="xs" role="status">
          <Text size="sm">{plural(cases.length, "test case")}</Text>
          {current.length > failures && (
            <Badge color="teal" variant="light" tt="none">
              {current.length - failures} passed
            </Badge>
          )}
          {failures > 0 && (
            <Badge color="red" variant="light" tt="none">
              {failures} failed
            </Badge>
          )}
        </Group>
        <Button
          size="xs"
          leftSection={<IconPlayerPlay size={14} />}
          loading={isBusy}
          onClick={() => run(null)}
        >
          Run all
        </Button>
      </Group>
      {error && <Problems problems={problemsOf(error)} title="Could not run the tests" onPick={onPick} />}
      {cases.map((testCase, place) => (
        <CaseCard
          key={testCase.name}
          testCase={testCase}
          result={runs[testCase.name]?.result ?? null}
          isOld={isOld(testCase)}
          isRunning={isRunning(testCase.name)}
          isBusy={isBusy}
          taken={cases.map((each) => each.name).filter((name) => name !== testCase.name)}
          onRun={() => run([testCase.name])}
          onTry={() => onTry(testCase)}
          onRename={onCases && ((name) => onCases(cases.with(place, { ...testCase, name })))}
          onDelete={
            onCases &&
            (() => {
              onCases(cases.filter((each) => each !== testCase));
              done(`Deleted test case ${testCase.name}`, () => onCases([...cases]));
            })
          }
        />
      ))}
    </Stack>
  );
}
