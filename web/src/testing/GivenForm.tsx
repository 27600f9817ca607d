import { Button, Code, Group, Paper, Stack, Text } from "@mantine/core";
import { LazyCodeEditor } from "#/editors/LazyCodeEditor";
import { Prose } from "#/forms/Prose";
import { answersBegin } from "./given";
import type { Asking } from "./testable";

interface Props {
  steps: readonly Asking[];
  /** Step → JSON. */
  given: Record<string, string>;
  /** Step → why its text cannot be sent. */
  faults: Record<string, string>;
  /** How many samples there are: a service is asked for each. */
  count: number;
  onChange: (given: Record<string, string>) => void;
}

/** What the outside would answer: for steps that ask it, which a test run does not. */
export function GivenForm({ steps, given, faults, count, onChange }: Props) {
  if (steps.length === 0) return null;
  return (
    <Stack gap="xs" component="section" aria-label="Answers of external systems">
      {steps.map((step) => {
        const text = given[step.id] ?? "";
        const isMissing = step.isNeeded && text.trim() === "";
        return (
          <Paper key={step.id} withBorder p="xs">
            <Stack gap={4}>
              <Group justify="space-between" wrap="nowrap" gap="xs">
                <Text size="sm">
                  Answers for <Code>{step.id}</Code>
                </Text>
                {text.trim() === "" && (
                  <Button
                    size="compact-xs"
                    variant="light"
                    onClick={() => onChange({ ...given, [step.id]: answersBegin(step, count) })}
                  >
                    Suggest an answer
                  </Button>
                )}
              </Group>
              <Text size="xs" c="dimmed">
                <Prose
                  text={step.about || "The step calls an external system. Test runs don't make such calls."}
                />
              </Text>
              <LazyCodeEditor
                language="json"
                label={`Answers for step ${step.id} as JSON`}
                value={text}
                minHeight={48}
                maxHeight={220}
                onChange={(next) => onChange({ ...given, [step.id]: next })}
              />
              {(faults[step.id] || isMissing) && (
                <Text size="xs" c="var(--mantine-color-error)" role="status">
                  {faults[step.id] ?? "The run stopped here: the step needs an answer."}
                </Text>
              )}
            </Stack>
          </Paper>
        );
      })}
    </Stack>
  );
}
