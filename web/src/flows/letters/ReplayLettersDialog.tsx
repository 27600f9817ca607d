import { Button, Group, Loader, Modal, Radio, Stack, Text } from "@mantine/core";
import { useMutation, useQuery, useQueryClient } from "@tanstack/react-query";
import { useState } from "react";
import type { Kind } from "#/api/kinds";
import { count, plural } from "#/components/format";
import { Failure } from "#/components/Problems";
import { belowKey } from "../api";
import { type Begin, type Choice, replayLetters } from "./api";
import { Outcomes, Refused } from "./Outcomes";

interface Props {
  kind: Kind;
  id: string;
  /** Null: nothing is to be replayed. */
  choice: Choice | null;
  onClose: () => void;
}

/** Replays letters: tells first which can be, then what came of each. */
export function ReplayLettersDialog({ kind, id, choice, onClose }: Props) {
  return (
    <Modal
      opened={choice !== null}
      onClose={onClose}
      title="Replay dead letters"
      size="lg"
      closeButtonProps={{ "aria-label": "Close" }}
    >
      {choice && <Body kind={kind} id={id} choice={choice} onClose={onClose} />}
    </Modal>
  );
}

function Body({ kind, id, choice, onClose }: Props & { choice: Choice }) {
  const queries = useQueryClient();
  const [begin, setBegin] = useState<Begin>("step");
  const trial = useQuery({
    queryKey: ["replay letters", kind.place, id, choice, begin],
    queryFn: () => replayLetters(kind, id, choice, { begin, dryRun: true }),
    retry: false,
    staleTime: 0,
    gcTime: 0,
  });
  const replay = useMutation({
    mutationFn: (from: number) => replayLetters(kind, id, choice, { begin, dryRun: false, from }),
    onSettled: () => queries.invalidateQueries({ queryKey: belowKey(kind, id, "letters") }),
  });
  if (replay.data) {
    const { next } = replay.data;
    return (
      <Stack>
        <Outcomes kind={kind} id={id} result={replay.data} choice={choice} />
        <Group justify="flex-end">
          {next !== null && next !== undefined && (
            <Button variant="default" loading={replay.isPending} onClick={() => replay.mutate(next)}>
              Continue with the next
            </Button>
          )}
          <Button onClick={onClose}>Close</Button>
        </Group>
      </Stack>
    );
  }
  const able = trial.isSuccess && !trial.isFetching ? (trial.data.replayed ?? 0) : null;
  return (
    <Stack>
      <Text size="sm" c="dimmed">
        The events run through the steps of the current revision, alongside the live flow. Events that fail
        again are kept as new dead letters.
      </Text>
      <Radio.Group label="Start at" value={begin} onChange={(next) => setBegin(next as Begin)}>
        <Stack gap={6} mt={4}>
          <Radio
            value="step"
            label="The step that failed"
            description="Events rejected by a sink are delivered to that sink only."
          />
          <Radio
            value="start"
            label="The first step"
            description="The original event is read again from the stream, without your edits, and all of its results are delivered."
          />
        </Stack>
      </Radio.Group>
      {trial.isFetching && (
        <Group gap="xs" role="status">
          <Loader size="xs" />
          <Text size="sm">Checking which letters can be replayed</Text>
        </Group>
      )}
      {able !== null && (
        <Text size="sm" role="status">
          {able === 0
            ? "None of these letters can be replayed."
            : `${plural(able, "letter")} can be replayed.`}
        </Text>
      )}
      {able !== null && <Refused refused={trial.data?.refused ?? []} />}
      <Failure error={trial.error ?? trial.data?.error} title="These letters can't be replayed" />
      <Failure error={replay.error} title="Not replayed" />
      <Group justify="flex-end">
        <Button variant="default" onClick={onClose}>
          Cancel
        </Button>
        <Button disabled={!able} loading={replay.isPending} onClick={() => replay.mutate(0)}>
          {able ? `Replay ${count(able)}` : "Replay"}
        </Button>
      </Group>
    </Stack>
  );
}
