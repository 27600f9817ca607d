import { Group, NumberInput, Select, TextInput } from "@mantine/core";
import { useState } from "react";

type Way = "earliest" | "latest" | "newest" | "end" | "offset" | "time";

const WAYS: Record<Way, string> = {
  earliest: "the first event",
  latest: "the end",
  newest: "the newest events",
  end: "the current end",
  offset: "an offset",
  time: "a time",
};

interface Props {
  label: string;
  description?: string;
  /** A position as the server reads it (`earliest`, `offset:42`, `time:…`); empty while it is not complete. */
  value: string;
  onChange: (position: string) => void;
  /** The ways to say it; `newest` and `end` are empty positions. */
  ways: readonly Way[];
  error?: string;
}

/** A place in a stream: its ends, an offset, or a moment in the reader's own time zone. */
export function PositionInput({ label, description, value, onChange, ways, error }: Props) {
  const [way, setWay] = useState<Way>(wayOf(value, ways));
  const choose = (next: Way) => {
    setWay(next);
    onChange(next === "earliest" || next === "latest" ? next : "");
  };
  return (
    <Group align="flex-start" gap="xs" grow preventGrowOverflow={false} wrap="wrap">
      <Select
        label={label}
        description={description}
        data={ways.map((each) => ({ value: each, label: WAYS[each] }))}
        value={way}
        onChange={(next) => next && choose(next as Way)}
        allowDeselect={false}
        error={way === "offset" || way === "time" ? undefined : error}
        miw={160}
      />
      {way === "offset" && (
        <NumberInput
          label={`${label}: offset`}
          min={0}
          allowDecimal={false}
          value={value.startsWith("offset:") ? Number(value.slice(7)) : ""}
          onChange={(next) => onChange(next === "" ? "" : `offset:${next}`)}
          error={error}
          miw={140}
        />
      )}
      {way === "time" && (
        <TextInput
          label={`${label}: time`}
          type="datetime-local"
          step={1}
          value={value.startsWith("time:") ? localTime(value.slice(5)) : ""}
          onChange={(event) => onChange(timePosition(event.currentTarget.value))}
          error={error}
          miw={200}
        />
      )}
    </Group>
  );
}

function wayOf(value: string, ways: readonly Way[]): Way {
  if (value.startsWith("offset:")) return "offset";
  if (value.startsWith("time:")) return "time";
  return ways.find((each) => each === value) ?? ways[0]!;
}

const timePosition = (local: string) => (local ? `time:${new Date(local).toISOString()}` : "");

/** 2026-01-31T12:00:00Z as the inputs of browsers want it: without a zone, in that of the reader. */
function localTime(iso: string): string {
  const date = new Date(iso);
  return new Date(date.getTime() - date.getTimezoneOffset() * 60_000).toISOString().slice(0, 19);
}
