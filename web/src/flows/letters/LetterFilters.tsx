import { Group, Select, TextInput } from "@mantine/core";
import { IconSearch } from "@tabler/icons-react";
import type { Schemas } from "#/api/client";
import { count } from "#/components/format";
import type { LetterFilter, LetterState } from "./api";

const STATES: { value: LetterState | "all"; label: string }[] = [
  { value: "all", label: "Any state" },
  { value: "new", label: "New" },
  { value: "replaying", label: "Replaying" },
  { value: "replayed", label: "Replayed" },
  { value: "discarded", label: "Discarded" },
];

interface Props {
  filter: LetterFilter;
  onChange: (filter: LetterFilter) => void;
  found: Schemas["LettersView"];
}

/** Which letters are shown; steps and codes are offered as there are letters of them. */
export function LetterFilters({ filter, onChange, found }: Props) {
  const sum = (of: "step" | "code") => {
    const sums = new Map<string, number>();
    for (const each of found.counts) sums.set(each[of], (sums.get(each[of]) ?? 0) + each.letters);
    return [...sums].map(([value, letters]) => ({ value, label: `${value} (${count(letters)})` }));
  };
  return (
    <Group gap="xs" align="flex-end">
      <Select
        label="State"
        data={STATES.map((each) => ({ ...each, label: labelled(each, found.states) }))}
        value={filter.state}
        onChange={(state) => onChange({ ...filter, state: (state as LetterState) ?? "all" })}
        allowDeselect={false}
        w={160}
      />
      <Select
        label="Step or sink"
        placeholder="Any"
        data={sum("step")}
        value={filter.step}
        onChange={(step) => onChange({ ...filter, step })}
        clearable
        w={190}
      />
      <Select
        label="Code"
        placeholder="Any"
        data={sum("code")}
        value={filter.code}
        onChange={(code) => onChange({ ...filter, code })}
        clearable
        w={220}
      />
      <TextInput
        label="Find"
        placeholder="text in the event or reason"
        leftSection={<IconSearch size={14} aria-hidden />}
        value={filter.contains}
        onChange={(event) => onChange({ ...filter, contains: event.currentTarget.value })}
      />
    </Group>
  );
}

function labelled({ value, label }: (typeof STATES)[number], states: Record<string, number>): string {
  return value === "all" ? label : `${label} (${count(states[value] ?? 0)})`;
}
