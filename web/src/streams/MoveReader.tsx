import { Button, Group, Loader, Modal, Paper, Stack, Text } from "@mantine/core";
import { useDebouncedValue } from "@mantine/hooks";
import { useState } from "react";
import { KINDS, type KindName } from "#/api/kinds";
import { plural } from "#/components/format";
import { done } from "#/components/notify";
import { Failure } from "#/components/Problems";
import { PositionInput } from "#/flows/PositionInput";
import { type Move, useMove, useMovePlan } from "./api";

interface Props {
  id: string;
  /** The flow that reads the stream, such as `Pipeline/orders`. */
  owner: string;
  onClose: () => void;
}

/** Moves a reader to another position: first in words, then for real. */
export function MoveReader({ id, owner, onClose }: Props) {
  const [kindName, ...rest] = owner.split("/");
  const kind = KINDS[kindName as KindName];
  const name = rest.join("/");
  const [to, setTo] = useState("earliest");
  const [settled] = useDebouncedValue(to, 300);
  const plan = useMovePlan(kind, name, settled);
  const move = useMove(id);
  const isReady = settled === to && to !== "" && plan.isSuccess;
  const apply = () =>
    move.mutate(
      { kind, name, to },
      {
        onSuccess: ({ after }) => {
          done(`The position of ${kind.one} ${name} is now offset ${after}.`);
          onClose();
        },
      },
    );
  return (
    <Modal
      opened
      onClose={onClose}
      title={`Move the position of ${kind.one} ${name}`}
      closeButtonProps={{ "aria-label": "Close" }}
    >
      <Stack>
        <PositionInput
          label="Continue at"
          value={to}
          ways={["earliest", "latest", "offset", "time"]}
          onChange={setTo}
        />
        {to !== "" && !plan.error && (
          <Paper withBorder p="sm" role="status">
            {isReady ? (
              <Text size="sm">{sentences(plan.data, kind.one).join(" ")}</Text>
            ) : (
              <Loader size="xs" aria-label="Counting the events" />
            )}
          </Paper>
        )}
        <Failure error={plan.error ?? move.error} title="The position can't be moved" />
        <Group justify="flex-end">
          <Button variant="default" onClick={onClose}>
            Cancel
          </Button>
          <Button color="red" disabled={!isReady} loading={move.isPending} onClick={apply}>
            Move position
          </Button>
        </Group>
      </Stack>
    </Modal>
  );
}

/** What a move does, in words. */
export function sentences(move: Move, one: string): string[] {
  const { before, after, again, skipped, loses, restarts } = move;
  const found = [
    before === null
      ? `The ${one} has not read yet. It starts at offset ${after}.`
      : `The ${one} continues at offset ${after} instead of ${before}.`,
  ];
  const are = (count: number) => `${plural(count, "event")} ${count === 1 ? "is" : "are"}`;
  if (again > 0) found.push(`${are(again)} read and delivered again, also to exactly-once sinks.`);
  if (skipped > 0) found.push(`${are(skipped)} skipped and not delivered.`);
  if (again === 0 && skipped === 0) found.push("No events are read again or skipped.");
  if (loses.length > 0) found.push(`The state of ${loses.join(", ")} is discarded.`);
  if (restarts) found.push(`The ${one} stops after its current batch and starts again.`);
  return found;
}
