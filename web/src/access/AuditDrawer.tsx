import { Code, Drawer, Stack, Text } from "@mantine/core";
import { lazy, Suspense } from "react";
import { moment } from "#/components/format";
import { Loading } from "#/components/Page";
import { yamlOf } from "#/documents/content";
import { Result } from "./AuditTable";
import type { AuditEntry } from "./types";

const DiffView = lazy(() => import("#/editors/DiffView"));

/** One entry of the audit log: who, when, and how things were before and after. */
export function AuditDrawer({ entry, onClose }: { entry: AuditEntry | null; onClose: () => void }) {
  return (
    <Drawer
      opened={entry !== null}
      onClose={onClose}
      position="right"
      size="xl"
      title={entry ? `${entry.action} ${entry.target}` : ""}
      closeButtonProps={{ "aria-label": "Close" }}
    >
      {entry && <Body entry={entry} />}
    </Drawer>
  );
}

function Body({ entry }: { entry: AuditEntry }) {
  const { before, after } = entry;
  return (
    <Stack>
      <Text size="sm" component="div">
        {moment(entry.at)}, by <b>{entry.user ?? "an unknown user"}</b>
        {entry.via && ` (${entry.via})`}
        {entry.address && (
          <>
            {" "}
            from <Code>{entry.address}</Code>
          </>
        )}{" "}
        <Result status={entry.status} />
      </Text>
      {before === null && after === null ? (
        <Text size="sm" c="dimmed">
          This entry has no content to compare.
        </Text>
      ) : (
        <Suspense fallback={<Loading />}>
          <DiffView before={textOf(before)} after={textOf(after)} language="yaml" />
        </Suspense>
      )}
    </Stack>
  );
}

const textOf = (content: Record<string, unknown> | null) => (content === null ? "" : yamlOf(content));
