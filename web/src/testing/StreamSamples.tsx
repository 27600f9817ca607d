import { Button, Modal, NumberInput, Select, Stack } from "@mantine/core";
import { IconArrowsRight } from "@tabler/icons-react";
import { useMutation } from "@tanstack/react-query";
import { useState } from "react";
import { api, body } from "#/api/client";
import { usePulse } from "#/api/overview";
import { Failure } from "#/components/Problems";
import { PositionInput } from "#/flows/PositionInput";
import { sampleOf } from "./samples";
import type { Event } from "./trace";

const MOST = 1000;

interface Props {
  /** The one to begin with. */
  stream: string | null;
  onTake: (events: Event[]) => void;
}

/** Takes events of a stream: the last ones, or from a place on. */
export function StreamSamples({ stream, onTake }: Props) {
  const [isOpen, setOpen] = useState(false);
  return (
    <>
      <Button
        size="compact-sm"
        variant="default"
        leftSection={<IconArrowsRight size={14} />}
        onClick={() => setOpen(true)}
      >
        From a stream
      </Button>
      <Modal
        opened={isOpen}
        onClose={() => setOpen(false)}
        title="Use events from a stream"
        closeButtonProps={{ "aria-label": "Close" }}
      >
        <Choice
          stream={stream}
          onTake={(events) => {
            setOpen(false);
            onTake(events);
          }}
        />
      </Modal>
    </>
  );
}

function Choice({ stream, onTake }: Props) {
  const { streams } = usePulse();
  const [chosen, setChosen] = useState(stream);
  const [position, setPosition] = useState("latest");
  const [count, setCount] = useState<number | string>(10);
  const data = [...streams.values()].map(({ id, name, events }) => ({
    value: id,
    label: `${name} (${events})`,
  }));
  const taking = useMutation({
    mutationFn: () => taken(chosen!, position, Number(count)),
    onSuccess: onTake,
  });
  return (
    <form
      onSubmit={(event) => {
        event.preventDefault();
        event.stopPropagation(); // a portal still bubbles to the form around it
        taking.mutate();
      }}
    >
      <Stack gap="xs">
        <Select
          label="Stream"
          data={data}
          value={chosen}
          onChange={setChosen}
          searchable
          data-autofocus
          nothingFoundMessage="No matching stream"
        />
        <PositionInput
          label="Events from"
          value={position}
          onChange={setPosition}
          ways={["latest", "earliest", "offset", "time"]}
          description={position === "latest" ? "The most recent events of the stream" : undefined}
        />
        <NumberInput
          label="Number of events"
          min={1}
          max={MOST}
          allowDecimal={false}
          value={count}
          onChange={setCount}
        />
        <Failure error={taking.error} />
        <Button
          type="submit"
          loading={taking.isPending}
          disabled={!chosen || position === "" || count === ""}
        >
          Use these events
        </Button>
      </Stack>
    </form>
  );
}

async function taken(stream: string, position: string, count: number): Promise<Event[]> {
  const query = position === "latest" ? { last: count } : { position, limit: count };
  const found = await body(api.GET("/streams/{name}/events", { params: { path: { name: stream }, query } }));
  if (found.events.length === 0) throw new Error("The stream has no events at this position.");
  return found.events.map(sampleOf);
}
