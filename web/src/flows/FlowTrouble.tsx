import { Alert, Button, Group, Loader, Stack, Text } from "@mantine/core";
import { useState } from "react";
import { useNavigate } from "react-router";
import { problemsOf } from "#/api/client";
import { type AnyDocument, keyOf, pageOf } from "#/api/kinds";
import { useFlowPulse } from "#/api/overview";
import { useAllowed } from "#/api/session";
import { ago, capital, moment, plural } from "#/components/format";
import { Problems } from "#/components/Problems";
import { type Controls, VERBS } from "./useControls";

interface Props {
  document: AnyDocument;
  controls: Controls;
}

/** What is under way, what was refused, and why a flow does not run; each fault leads to its field. */
export function FlowTrouble({ document, controls }: Props) {
  const navigate = useNavigate();
  const { pending, refused } = controls;
  const edit = (path: string) =>
    navigate(`${pageOf(document.kind, document.id)}/edit?at=${encodeURIComponent(path)}`);
  const pick = useAllowed("editor") ? edit : undefined;
  const error = isTroubled(document) ? document.error : null;
  const stalled = document.status === "active" && document.phase === "stalled";
  if (!pending && !refused && !error && !stalled) return null;
  return (
    <Stack gap="sm">
      {pending && (
        <Group gap="xs" role="status">
          <Loader size="xs" />
          <Text size="sm">{VERBS[pending].doing}</Text>
        </Group>
      )}
      {refused && (
        <Alert
          variant="transparent"
          p={0}
          withCloseButton
          closeButtonLabel="Dismiss"
          onClose={controls.dismiss}
          title={`Could not ${refused.verb} ${document.name}`}
        >
          <Problems problems={problemsOf(refused.error)} onPick={pick} />
        </Alert>
      )}
      {stalled && <Standstill document={document} />}
      {error && !refused && (
        <Problems
          problems={error.problems?.length ? error.problems : [error]}
          title={titleOf(document)}
          onPick={pick}
        />
      )}
      {error && <Attempts document={document} />}
    </Stack>
  );
}

/** Whether the last error is of now: the flow has not processed a batch since. */
export function isTroubled({ error }: AnyDocument): boolean {
  return Boolean(error) && !error?.recovered;
}

function titleOf({ status, phase, error }: AnyDocument): string {
  const at = error?.at ? ` (${moment(error.at)})` : "";
  if (status === "failed") return `Failed${at}. Fix the error, then start it again`;
  if (phase === "stalled") return `Stalled${at}. Retrying automatically`;
  if (phase === "backing_off") return `Failed${at}. Retrying automatically`;
  if (status === "paused") return `Can't run${at}. Fix the errors, then resume`;
  return `Last error${at}`;
}

/** What a stalled flow has not done: how often it failed, since when, and what waits for it. */
function Standstill({ document }: { document: AnyDocument }) {
  const flow = useFlowPulse(keyOf(document));
  const failed = flow?.failed_attempts ?? document.failed_attempts ?? 0;
  const goodAt = flow?.good_at ?? document.ops?.good_at;
  const facts = [
    failed > 0 ? `${plural(failed, "failed attempt")} since its last good batch` : null,
    `last good batch: ${goodAt ? ago(goodAt) : "none yet"}`,
    flow?.lag_events
      ? `backlog: ${plural(flow.lag_events, "event")}${flow.lag_growing ? " and growing" : ""}`
      : null,
  ];
  return (
    <Alert color="red" variant="light" title="Stalled: this flow should process events and does not">
      {capital(facts.filter(Boolean).join("; "))}.
    </Alert>
  );
}

const SHOWN = 3;

/** The attempts that failed, the newest first. */
export function Attempts({ document }: { document: AnyDocument }) {
  const [all, setAll] = useState(false);
  const attempts = (document.attempts ?? []).toReversed();
  if (attempts.length === 0) return null;
  return (
    <Stack gap={4} align="flex-start">
      <Stack gap={2} component="ol" m={0} pl={0} style={{ listStyle: "none" }} aria-label="Failed attempts">
        {(all ? attempts : attempts.slice(0, SHOWN)).map((each) => (
          <Text key={`${each.at} ${each.attempt}`} size="xs" c="dimmed" component="li">
            attempt {each.attempt}, {moment(each.at)}: {each.message} ({each.code})
          </Text>
        ))}
      </Stack>
      {attempts.length > SHOWN && (
        <Button variant="subtle" size="compact-xs" onClick={() => setAll(!all)}>
          {all ? "Show fewer" : `Show all ${attempts.length} attempts`}
        </Button>
      )}
    </Stack>
  );
}
