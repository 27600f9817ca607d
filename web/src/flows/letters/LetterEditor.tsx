import { Button, Collapse, Group, Stack, Text } from "@mantine/core";
import { useState } from "react";
import type { Kind } from "#/api/kinds";
import { useAllowed } from "#/api/session";
import { done, failed } from "#/components/notify";
import { Failure } from "#/components/Problems";
import { LazyCodeEditor } from "#/editors/LazyCodeEditor";
import type { Letter } from "../api";
import { useLetterActions } from "./api";
import { parseEvent } from "./event";
import { isBlocked } from "./obstacles";
import { SendToInput } from "./SendToInput";
import { useDiscard } from "./useDiscard";
import { useSaveAndReplay } from "./useSaveAndReplay";

interface Props {
  kind: Kind;
  id: string;
  letter: Letter;
  onReplay: () => void;
}

const pretty = (value: unknown) => JSON.stringify(value, null, 2);

/** The event of a letter: edited and saved, then replayed; or given up. The original is kept. */
export function LetterEditor({ kind, id, letter, onReplay }: Props) {
  const { edit, restore } = useLetterActions(kind, id);
  const saveAndReplay = useSaveAndReplay(kind, id, letter.offset);
  const { ask, pending } = useDiscard(kind, id);
  const [text, setText] = useState(() => pretty(letter.event));
  const [original, setOriginal] = useState(false);
  const parsed = parseEvent(text);
  const changed = text !== pretty(letter.event);
  const gone = letter.state === "discarded";
  const mayRepair = useAllowed("operator");
  const save = (event: Record<string, unknown>, message: string) =>
    edit.mutate({ offset: letter.offset, event }, { onSuccess: () => done(message) });
  return (
    <Stack gap="xs">
      <Text size="sm" fw={600}>
        {letter.edited ? "Edited event" : "Event as the step received it"}
      </Text>
      <LazyCodeEditor
        language="json"
        value={text}
        onChange={setText}
        readOnly={gone || !mayRepair}
        label="Event as JSON"
        problems={changed && parsed.problem ? [{ message: parsed.problem }] : []}
      />
      {changed && parsed.problem && (
        <Text size="sm" c="var(--mantine-color-error)" role="alert">
          {parsed.problem}
        </Text>
      )}
      <Failure error={edit.error} title="Not saved" />
      <Group gap="xs">
        {mayRepair && (
          <>
            {changed ? (
              <>
                {letter.obstacle === null && (
                  <Button
                    disabled={parsed.event === null}
                    loading={saveAndReplay.isPending}
                    onClick={() => parsed.event && saveAndReplay.mutate(parsed.event)}
                  >
                    Save and replay
                  </Button>
                )}
                <Button
                  variant="default"
                  disabled={parsed.event === null}
                  loading={edit.isPending}
                  onClick={() => parsed.event && save(parsed.event, `Saved letter ${letter.offset}.`)}
                >
                  Save
                </Button>
                <Button variant="default" onClick={() => setText(pretty(letter.event))}>
                  Revert
                </Button>
              </>
            ) : (
              <Button disabled={gone || isBlocked(letter)} onClick={onReplay}>
                {letter.state === "replayed" ? "Replay again" : "Replay"}
              </Button>
            )}
            {letter.state === "new" && !changed && letter.in_input && (
              <SendToInput kind={kind} id={id} letters={[letter]} />
            )}
            {gone ? (
              <Button
                variant="default"
                loading={restore.isPending}
                onClick={() =>
                  restore.mutate([letter.offset], {
                    onError: (error) => failed("Not restored", error),
                  })
                }
              >
                Restore
              </Button>
            ) : (
              <Button variant="default" loading={pending} onClick={() => ask([letter.offset])}>
                Discard
              </Button>
            )}
          </>
        )}
        {letter.edited && (
          <Button variant="subtle" onClick={() => setOriginal(!original)} aria-expanded={original}>
            {original ? "Hide original" : "Show original"}
          </Button>
        )}
      </Group>
      {letter.edited && (
        <Collapse expanded={original}>
          <Stack gap="xs">
            <LazyCodeEditor
              language="json"
              value={pretty(letter.original)}
              readOnly
              label="Original event as JSON"
            />
            {mayRepair && (
              <Button
                variant="default"
                size="xs"
                w="fit-content"
                loading={edit.isPending}
                onClick={() =>
                  save(
                    letter.original as Record<string, unknown>,
                    `Restored the original event of letter ${letter.offset}.`,
                  )
                }
              >
                Restore original
              </Button>
            )}
          </Stack>
        </Collapse>
      )}
    </Stack>
  );
}
