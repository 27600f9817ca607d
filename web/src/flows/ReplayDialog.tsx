import { Button, Group, Modal, Stack, Text, TextInput } from "@mantine/core";
import { useDebouncedValue } from "@mantine/hooks";
import { useMutation, useQuery, useQueryClient } from "@tanstack/react-query";
import { useState } from "react";
import { api, body, problemsOf } from "#/api/client";
import type { Kind } from "#/api/kinds";
import { plural } from "#/components/format";
import { Problems } from "#/components/Problems";
import { below, belowKey } from "./api";
import { PositionInput } from "./PositionInput";
import { ReplayCount } from "./ReplayCount";
import { ReplayList } from "./ReplayList";
import { ReplayTarget } from "./ReplayTarget";
import { orderOf, problemAt, type ReplayForm, type ReplayOrder, unplaced } from "./replayOrder";

interface Props {
  /** Pipeline or Task. */
  kind: Kind;
  id: string;
  name: string;
  open: boolean;
  onClose: () => void;
  /** The position at which the range begins, such as `offset:42`. */
  initialFrom?: string;
}

/** Sends a range of a stream through a flow once more: counted first, then started and watched. */
export function ReplayDialog(props: Props) {
  return (
    <Modal
      opened={props.open}
      onClose={props.onClose}
      title={`Replay events through ${props.name}`}
      size="lg"
      closeButtonProps={{ "aria-label": "Close" }}
    >
      <Replaying {...props} />
    </Modal>
  );
}

function Replaying({ kind, id, onClose, initialFrom }: Props) {
  const queries = useQueryClient();
  const [form, setForm] = useState<ReplayForm>({
    from: initialFrom ?? "earliest",
    to: "",
    target: "all",
    sinks: [],
    path: "",
    stream: "",
    name: "",
  });
  const order = orderOf(form);
  const [settled] = useDebouncedValue(order, 400);
  const counted = useQuery({
    queryKey: ["replay", kind.place, id, settled],
    queryFn: () => send(kind, id, settled!, true),
    enabled: settled !== null,
    retry: false,
    staleTime: 0,
  });
  const started = useMutation({
    mutationFn: () => send(kind, id, order!, false),
    onSuccess: () => queries.invalidateQueries({ queryKey: belowKey(kind, id, "replays") }),
  });
  const edit = (change: Partial<ReplayForm>) => {
    started.reset();
    setForm((before) => ({ ...before, ...change }));
  };
  const fresh = JSON.stringify(order) === JSON.stringify(settled);
  const refused = started.error ?? counted.error;
  const problems = refused && fresh ? problemsOf(refused) : [];
  const ready = order !== null && fresh && counted.isSuccess && !counted.isFetching;
  if (started.data) return <Started kind={kind} id={id} onAgain={started.reset} onClose={onClose} />;
  return (
    <Stack>
      <Text size="sm" c="dimmed">
        A separate pipeline runs these events through the current steps alongside the live flow, and stops at
        the end of the range.
      </Text>
      <PositionInput
        label="From"
        value={form.from}
        onChange={(from) => edit({ from })}
        ways={["earliest", "offset", "time"]}
        error={problemAt(problems, "from")}
      />
      <PositionInput
        label="To"
        description="Exclusive: this event is not replayed."
        value={form.to}
        onChange={(to) => edit({ to })}
        ways={["end", "offset", "time"]}
        error={problemAt(problems, "to")}
      />
      <ReplayTarget kind={kind} id={id} form={form} onChange={edit} error={problemAt(problems, "sinks")} />
      <TextInput
        label="Name"
        placeholder="default: NAME replay N"
        value={form.name}
        onChange={(event) => edit({ name: event.currentTarget.value })}
        error={problemAt(problems, "name")}
      />
      <Problems problems={unplaced(problems)} title="These events can't be replayed" />
      <ReplayCount
        answer={ready ? counted.data : undefined}
        counting={order !== null && !ready && !refused}
      />
      <Group justify="flex-end">
        <Button variant="default" onClick={onClose}>
          Close
        </Button>
        <Button disabled={!ready} loading={started.isPending} onClick={() => started.mutate()}>
          {ready ? `Replay ${plural(counted.data.range.events, "event")}` : "Replay"}
        </Button>
      </Group>
      <ReplayList kind={kind} id={id} />
    </Stack>
  );
}

interface StartedProps extends Pick<Props, "kind" | "id" | "onClose"> {
  onAgain: () => void;
}

/** A replay is under way: how far it and the earlier ones are. */
function Started({ kind, id, onAgain, onClose }: StartedProps) {
  return (
    <Stack>
      <Text size="sm" role="status">
        Replay started. It continues when you close this dialog and is listed on the page of the {kind.one}.
      </Text>
      <ReplayList kind={kind} id={id} />
      <Group justify="flex-end">
        <Button variant="default" onClick={onAgain}>
          Start another replay
        </Button>
        <Button onClick={onClose} data-autofocus>
          Close
        </Button>
      </Group>
    </Stack>
  );
}

function send(kind: Kind, id: string, order: ReplayOrder, dryRun: boolean) {
  const path = below(kind, "/pipelines/{name}/replay");
  return body(
    api.POST(path, { params: { path: { name: id } }, body: { ...order, dry_run: dryRun } as never }),
  );
}
