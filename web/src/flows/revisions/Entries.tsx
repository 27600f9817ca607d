import { Code, Stack, Text } from "@mantine/core";
import type { DiffEntry } from "./api";
import classes from "./Entries.module.css";

const WORDS: Record<DiffEntry["op"], string> = { add: "added", remove: "removed", replace: "changed" };

/** What differs, field by field. */
export function Entries({ entries }: { entries: readonly DiffEntry[] }) {
  if (entries.length === 0) {
    return (
      <Text size="sm" c="dimmed">
        No differences.
      </Text>
    );
  }
  return (
    <Stack gap="xs" component="ul" m={0} p={0} style={{ listStyle: "none" }}>
      {entries.map((entry) => (
        <li key={entry.path} className={classes.entry}>
          <Text size="sm" style={{ overflowWrap: "anywhere" }}>
            <Code>{entry.path}</Code> {WORDS[entry.op]}
          </Text>
          {entry.op !== "add" && <pre className={classes.before}>{shown(entry.before)}</pre>}
          {entry.op !== "remove" && <pre className={classes.after}>{shown(entry.after)}</pre>}
        </li>
      ))}
    </Stack>
  );
}

const shown = (value: unknown) => (typeof value === "string" ? value : JSON.stringify(value, null, 2));
