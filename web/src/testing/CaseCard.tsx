import { ActionIcon, Badge, Button, Group, Paper, Stack, Text, TextInput } from "@mantine/core";
import { IconCheck, IconFlask, IconPencil, IconPlayerPlay, IconTrash, IconX } from "@tabler/icons-react";
import { useState } from "react";
import { duration, plural } from "#/components/format";
import { Problems } from "#/components/Problems";
import { type Case, type CaseResult, expectation } from "./cases";
import { Differences } from "./Differences";

interface Props {
  testCase: Case;
  result: CaseResult | null;
  /** The document or the test is another one since. */
  isOld: boolean;
  isRunning: boolean;
  /** Some tests are running. */
  isBusy: boolean;
  /** The names of the others. */
  taken: readonly string[];
  onRun: () => void;
  onTry: () => void;
  onRename?: (name: string) => void;
  onDelete?: () => void;
}

/** One test of a document: what it has and expects, and how it ended. */
export function CaseCard(props: Props) {
  const { testCase, result, isOld, isRunning, isBusy, taken, onRun, onTry, onRename, onDelete } = props;
  const [isRenaming, setRenaming] = useState(false);
  const { name, input } = testCase;
  return (
    <Paper withBorder p="sm" component="section" aria-label={`Test case ${name}`}>
      <Stack gap="xs">
        <Group justify="space-between" gap="xs" align="flex-start">
          <Stack gap={2} style={{ flex: "1 1 240px", minWidth: 0 }}>
            {isRenaming ? (
              <Rename
                name={name}
                taken={taken}
                onDone={(next) => {
                  setRenaming(false);
                  if (next && next !== name) onRename?.(next);
                }}
              />
            ) : (
              <Group gap="xs">
                <Text fw={600} style={{ overflowWrap: "anywhere" }}>
                  {name}
                </Text>
                {result && <Verdict result={result} isOld={isOld} />}
              </Group>
            )}
            <Text size="xs" c="dimmed" style={{ overflowWrap: "anywhere" }}>
              {typeof input === "string" ? `events from ${input}` : `${plural(input.length, "event")} in`} ·{" "}
              {expectation(testCase)}
              {result && ` · ${duration(result.ms)}`}
            </Text>
          </Stack>
          <Group gap={4} wrap="nowrap">
            <Button
              size="compact-sm"
              variant="default"
              leftSection={<IconPlayerPlay size={14} />}
              loading={isRunning}
              disabled={isBusy && !isRunning}
              aria-label={`Run ${name}`}
              onClick={onRun}
            >
              Run
            </Button>
            <ActionIcon
              variant="subtle"
              aria-label={`Try the sample events of ${name}`}
              title="Try the sample events step by step"
              disabled={typeof input === "string"}
              onClick={onTry}
            >
              <IconFlask size={16} />
            </ActionIcon>
            {onRename && (
              <ActionIcon
                variant="subtle"
                aria-label={`Rename ${name}`}
                title="Rename"
                onClick={() => setRenaming(true)}
              >
                <IconPencil size={16} />
              </ActionIcon>
            )}
            {onDelete && (
              <ActionIcon
                variant="subtle"
                color="red"
                aria-label={`Delete ${name}`}
                title="Delete"
                onClick={onDelete}
              >
                <IconTrash size={16} />
              </ActionIcon>
            )}
          </Group>
        </Group>
        {result && !result.passed && (
          <>
            <Problems problems={result.errors} title="The test did not finish" />
            <Differences differences={result.differences} label={`Differences of ${name}`} />
          </>
        )}
      </Stack>
    </Paper>
  );
}

function Verdict({ result, isOld }: { result: CaseResult; isOld: boolean }) {
  const Icon = result.passed ? IconCheck : IconX;
  return (
    <Badge
      variant={isOld ? "outline" : "light"}
      color={isOld ? "gray" : result.passed ? "teal" : "red"}
      leftSection={<Icon size={12} aria-hidden />}
      tt="none"
      title={isOld ? "The document has changed since this run" : undefined}
    >
      {result.passed ? "passed" : "failed"}
      {isOld && " before the last change"}
    </Badge>
  );
}

interface RenameProps {
  name: string;
  taken: readonly string[];
  /** With null it stays as it is. */
  onDone: (name: string | null) => void;
}

function Rename({ name, taken, onDone }: RenameProps) {
  const [next, setNext] = useState(name);
  const isTaken = taken.includes(next.trim());
  return (
    <form
      onSubmit={(event) => {
        event.preventDefault();
        if (next.trim() && !isTaken) onDone(next.trim());
      }}
    >
      <Group gap="xs" align="flex-start" wrap="nowrap">
        <TextInput
          size="xs"
          aria-label={`New name of ${name}`}
          value={next}
          autoFocus
          style={{ flex: 1 }}
          error={isTaken && "Another test case has this name"}
          onChange={({ currentTarget }) => setNext(currentTarget.value)}
          onKeyDown={(event) => {
            if (event.key !== "Escape") return;
            event.stopPropagation(); // only the renaming ends, not what it is in
            onDone(null);
          }}
        />
        <Button size="xs" type="submit" disabled={!next.trim() || isTaken}>
          Rename
        </Button>
        <Button size="xs" variant="default" onClick={() => onDone(null)}>
          Cancel
        </Button>
      </Group>
    </form>
  );
}
