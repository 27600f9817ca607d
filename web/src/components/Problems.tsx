import { Alert, Code, List, Stack, Text } from "@mantine/core";
import { IconAlertTriangle, IconInfoCircle } from "@tabler/icons-react";
import { type Problem, problemsOf } from "#/api/client";

interface Props {
  problems: readonly Problem[];
  title?: string;
  level?: "error" | "warning";
  /** Called with the path of a problem that the person wants to see at its place. */
  onPick?: (path: string) => void;
}

/** Everything that is wrong: what, where, and what to do about it. */
export function Problems({ problems, title, level = "error", onPick }: Props) {
  if (problems.length === 0) return null;
  const color = level === "error" ? "red" : "yellow";
  return (
    <Alert
      color={color}
      variant="light"
      title={title}
      icon={level === "error" ? <IconAlertTriangle /> : <IconInfoCircle />}
      role={level === "error" ? "alert" : "status"}
    >
      <List spacing="xs" listStyleType="none">
        {problems.map((problem) => (
          <List.Item key={`${problem.code} ${problem.path} ${problem.message}`}>
            <OneProblem problem={problem} onPick={onPick} />
          </List.Item>
        ))}
      </List>
    </Alert>
  );
}

function OneProblem({ problem, onPick }: { problem: Problem; onPick?: (path: string) => void }) {
  const { path, message, hint, code } = problem;
  return (
    <Stack gap={2}>
      <Text size="sm">
        {path &&
          (onPick ? (
            <Text component="button" type="button" className="linklike" onClick={() => onPick(path)}>
              <Code>{path}</Code>
            </Text>
          ) : (
            <Code>{path}</Code>
          ))}{" "}
        {message}{" "}
        <Text span size="xs" c="dimmed">
          ({code})
        </Text>
      </Text>
      {hint && (
        <Text size="sm" c="dimmed">
          {hint}
        </Text>
      )}
    </Stack>
  );
}

/** Whatever was thrown, as problems. */
export function Failure({ error, title }: { error: unknown; title?: string }) {
  return error ? <Problems problems={problemsOf(error)} title={title} /> : null;
}
