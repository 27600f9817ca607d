import { Anchor, List, Stack, Text, Title } from "@mantine/core";
import { Link } from "react-router";
import type { AnyDocument } from "#/api/kinds";
import { moment, plural } from "#/components/format";
import { Attempts, isTroubled } from "./FlowTrouble";

/** What went wrong last, also if the flow has got over it. Nothing if nothing did. */
export function LastErrors({ document }: { document: AnyDocument }) {
  // What troubles it now stands above already.
  const { error = null, attempts = [] } = isTroubled(document) ? {} : document;
  const { ops } = document;
  const letters = ops?.dead_letters ?? 0;
  const sinks = Object.entries(ops?.sinks ?? {}).filter(([, sink]) => sink.last_error);
  if (!error && attempts.length === 0 && letters === 0 && sinks.length === 0) return null;
  return (
    <Stack gap="xs" component="section" aria-label="Last errors">
      <Title order={2} size="h4">
        Last errors
      </Title>
      <List size="sm">
        {error && (
          <List.Item>
            {error.message} ({error.code}
            {error.at ? `, ${moment(error.at)}` : ""})
          </List.Item>
        )}
        {sinks.map(([id, sink]) => (
          <List.Item key={id}>{sink.last_error}</List.Item>
        ))}
        {letters > 0 && (
          <List.Item>
            <Text span size="sm">
              {plural(letters, "event")} could not be processed:{" "}
            </Text>
            <Anchor component={Link} to="?tab=letters" size="sm" underline="always">
              inspect, edit and replay
            </Anchor>
          </List.Item>
        )}
      </List>
      {attempts.length > 0 && <Attempts document={document} />}
    </Stack>
  );
}
