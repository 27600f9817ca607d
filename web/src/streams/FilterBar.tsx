import { Autocomplete, Button, Group, Popover, Select, Stack, TextInput } from "@mantine/core";
import { IconFilter, IconPlus, IconX } from "@tabler/icons-react";
import { type FormEvent, useEffect, useState } from "react";
import { conditionOf, OPERATORS, type Operator } from "./fields";

interface Props {
  /** The condition that is in effect. */
  where: string;
  onWhere: (where: string) => void;
  fields: string[];
  error?: string;
}

/** Which events are shown: a condition as text, to which conditions can be added field by field. */
export function FilterBar({ where, onWhere, fields, error }: Props) {
  const [draft, setDraft] = useState(where);
  useEffect(() => setDraft(where), [where]);
  const submit = (event: FormEvent) => {
    event.preventDefault();
    onWhere(draft.trim());
  };
  return (
    <Group component="form" gap="xs" align="flex-start" onSubmit={submit} style={{ flex: "1 1 420px" }}>
      <TextInput
        aria-label="Filter"
        placeholder="Filter, such as: amount > 100 AND _key = 'k1'"
        value={draft}
        onChange={({ currentTarget }) => setDraft(currentTarget.value)}
        leftSection={<IconFilter size={16} />}
        error={error}
        maxLength={2000}
        spellCheck={false}
        styles={{ input: { fontFamily: "var(--mantine-font-family-monospace)", fontSize: 13 } }}
        style={{ flex: "1 1 240px" }}
      />
      <Button type="submit" variant="default">
        Apply
      </Button>
      {where !== "" && (
        <Button variant="subtle" onClick={() => onWhere("")} leftSection={<IconX size={16} />}>
          Clear
        </Button>
      )}
      <AddCondition
        fields={fields}
        onAdd={(condition) =>
          onWhere(draft.trim() === "" ? condition : `${joinable(draft)} AND ${condition}`)
        }
      />
    </Group>
  );
}

/** OR binds less than AND: what has an OR needs brackets before something is added. */
const joinable = (text: string) => (/\bor\b/i.test(text) ? `(${text.trim()})` : text.trim());

function AddCondition({ fields, onAdd }: { fields: string[]; onAdd: (condition: string) => void }) {
  const [opened, setOpened] = useState(false);
  const [field, setField] = useState("");
  const [operator, setOperator] = useState<Operator>("=");
  const [value, setValue] = useState("");
  const submit = (event: FormEvent) => {
    event.preventDefault();
    event.stopPropagation(); // the form around it is another one
    onAdd(conditionOf(field.trim(), operator, value));
    setOpened(false);
    setValue("");
  };
  return (
    <Popover opened={opened} onChange={setOpened} position="bottom-start" trapFocus>
      <Popover.Target>
        <Button variant="default" leftSection={<IconPlus size={16} />} onClick={() => setOpened(!opened)}>
          Add condition
        </Button>
      </Popover.Target>
      <Popover.Dropdown>
        <Stack component="form" gap="xs" w={260} onSubmit={submit}>
          <Autocomplete
            label="Field"
            data={fields}
            value={field}
            onChange={setField}
            comboboxProps={{ withinPortal: false }}
            data-autofocus
          />
          <Select
            label="Operator"
            data={OPERATORS}
            value={operator}
            onChange={(next) => setOperator(next as Operator)}
            allowDeselect={false}
            comboboxProps={{ withinPortal: false }}
          />
          {!operator.startsWith("is") && (
            <TextInput
              label="Value"
              value={value}
              onChange={({ currentTarget }) => setValue(currentTarget.value)}
            />
          )}
          <Button type="submit" disabled={field.trim() === ""}>
            Add
          </Button>
        </Stack>
      </Popover.Dropdown>
    </Popover>
  );
}
