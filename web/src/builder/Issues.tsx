import { Badge, Button, Collapse, Group, Loader, Paper, Text, UnstyledButton } from "@mantine/core";
import {
  IconAlertTriangle,
  IconCheck,
  IconChevronDown,
  IconChevronUp,
  IconInfoCircle,
} from "@tabler/icons-react";
import { useMemo, useState } from "react";
import type { Problem } from "#/api/client";
import { plural } from "#/components/format";
import { locate } from "#/documents/editing/yaml";
import classes from "./builder.module.css";
import { useBuilder } from "./context";

interface Props {
  /** The text that the problems are about. */
  text: string;
  onPick: (problem: Problem) => void;
}

/** Everything that is wrong, as one types; each leads to its place. */
export function Issues({ text, onPick }: Props) {
  const { check, isStale } = useBuilder();
  const { errors, warnings, isChecking } = check;
  const [isOpen, setOpen] = useState(true);
  const count = errors.length + warnings.length;
  return (
    <Paper withBorder className={classes.issues} component="section" aria-label="Problems">
      <Group justify="space-between" px="sm" py={6} wrap="nowrap">
        <Group gap="xs" role="status" wrap="nowrap">
          {isChecking && !isStale && <Loader size={14} aria-hidden />}
          {errors.length > 0 && (
            <Badge color="red" variant="light" tt="none">
              {plural(errors.length, "error")}
            </Badge>
          )}
          {warnings.length > 0 && (
            <Badge color="yellow" variant="light" tt="none">
              {plural(warnings.length, "warning")}
            </Badge>
          )}
          {count === 0 && !isChecking && !isStale && (
            <IconCheck size={16} aria-hidden className={classes.mark} />
          )}
          <Text size="sm" c="dimmed">
            {state(count, isChecking, isStale, check.isValid)}
          </Text>
        </Group>
        <Group gap="xs" wrap="nowrap">
          {!isStale && (
            <Button
              size="compact-xs"
              variant="subtle"
              color="gray"
              onClick={check.again}
              disabled={isChecking}
            >
              Check again
            </Button>
          )}
          {count > 0 && (
            <Button
              size="compact-xs"
              variant="subtle"
              color="gray"
              aria-expanded={isOpen}
              rightSection={isOpen ? <IconChevronDown size={14} /> : <IconChevronUp size={14} />}
              onClick={() => setOpen(!isOpen)}
            >
              {isOpen ? "Hide" : "Show"}
            </Button>
          )}
        </Group>
      </Group>
      <Collapse expanded={isOpen && count > 0}>
        {errors.map((problem) => (
          <Issue key={keyOf(problem)} problem={problem} level="error" text={text} onPick={onPick} />
        ))}
        {warnings.map((problem) => (
          <Issue key={keyOf(problem)} problem={problem} level="warning" text={text} onPick={onPick} />
        ))}
      </Collapse>
    </Paper>
  );
}

const keyOf = ({ code, path, message }: Problem) => `${code} ${path} ${message}`;

function state(count: number, isChecking: boolean, isStale: boolean, isValid: boolean): string {
  if (isStale) return "The YAML isn't a valid document yet, so it can't be checked.";
  if (isChecking) return "checking…";
  return count === 0 && isValid ? "No problems found. Ready to run." : "";
}

function Issue(props: {
  problem: Problem;
  level: "error" | "warning";
  text: string;
  onPick: (problem: Problem) => void;
}) {
  const { problem, level, text, onPick } = props;
  const line = useMemo(() => (problem.path ? locate(text, problem.path).line : null), [text, problem.path]);
  const Icon = level === "error" ? IconAlertTriangle : IconInfoCircle;
  return (
    <UnstyledButton className={classes.issue} data-level={level} onClick={() => onPick(problem)}>
      <Icon size={16} aria-label={level} />
      <div>
        <Text size="sm">
          {problem.message}
          {problem.path && (
            <Text span size="xs" c="dimmed" ff="monospace">
              {" "}
              {problem.path}
              {line ? `, line ${line}` : ""}
            </Text>
          )}
        </Text>
        {problem.hint && (
          <Text size="xs" c="dimmed">
            {problem.hint}
          </Text>
        )}
      </div>
    </UnstyledButton>
  );
}
