import { ActionIcon, Alert, Button, Group, Stack, Text, Textarea, TextInput } from "@mantine/core";
import { IconCheck, IconPlus, IconSend, IconX } from "@tabler/icons-react";
import { type FormEvent, useState } from "react";
import { type Problem, problemsOf } from "#/api/client";
import { Problems } from "#/components/Problems";
import { type Accepted, useProduce } from "./api";
import { type Column, columnsOf, typedValue } from "./ddl";

interface Header {
  name: string;
  value: string;
}

/** Sends one event to the stream, as any client could, and shows the answer. */
export function ProduceTab({ id, schema }: { id: string; schema: string | null }) {
  const produce = useProduce(id);
  const columns = schema === null ? null : columnsOf(schema);
  const [value, setValue] = useState("");
  const [fields, setFields] = useState<Record<string, string>>({});
  const [key, setKey] = useState("");
  const [headers, setHeaders] = useState<Header[]>([]);
  const problems = produce.error ? problemsOf(produce.error) : [];
  const unplaced = problems.filter((each) => !columns?.some(({ name }) => isAbout(each, name)));
  const send = (event: FormEvent) => {
    event.preventDefault();
    produce.mutate({
      key: key === "" ? null : key,
      headers: Object.fromEntries(headers.filter(({ name }) => name).map((each) => [each.name, each.value])),
      ...(columns === null ? { value } : { columns: typed(columns, fields) }),
    });
  };
  return (
    <Stack component="form" onSubmit={send} maw={720} gap="sm">
      <Text size="sm">
        The event is stored like any other: readers receive it, and it can't be removed.{" "}
        {columns === null
          ? "This stream accepts any text."
          : "An event that doesn't match the schema is rejected and not stored."}
      </Text>
      {columns === null ? (
        <Textarea
          label="Value"
          value={value}
          onChange={({ currentTarget }) => setValue(currentTarget.value)}
          autosize
          minRows={4}
          maxRows={16}
          spellCheck={false}
          styles={{ input: { fontFamily: "var(--mantine-font-family-monospace)" } }}
        />
      ) : (
        columns.map((column) => (
          <TextInput
            key={column.name}
            label={column.name}
            description={column.type}
            withAsterisk={column.required}
            value={fields[column.name] ?? ""}
            onChange={({ currentTarget }) => setFields({ ...fields, [column.name]: currentTarget.value })}
            error={problems.find((each) => isAbout(each, column.name))?.message}
            placeholder={column.required ? undefined : "null"}
            spellCheck={false}
          />
        ))
      )}
      <TextInput
        label="Key"
        description="Optional. Events with the same key belong together."
        value={key}
        onChange={({ currentTarget }) => setKey(currentTarget.value)}
      />
      <Headers headers={headers} onChange={setHeaders} />
      <Problems problems={unplaced} title="The event was rejected" />
      {produce.data && !produce.isPending && <Answer answer={produce.data} />}
      <Group>
        <Button type="submit" loading={produce.isPending} leftSection={<IconSend size={16} />}>
          Send event
        </Button>
      </Group>
    </Stack>
  );
}

const isAbout = ({ message }: Problem, column: string) => message.includes(`column '${column}'`);

/** The columns that were filled in; one that was left empty is not there. */
function typed(columns: readonly Column[], fields: Record<string, string>): Record<string, unknown> {
  return Object.fromEntries(
    columns
      .filter(({ name }) => (fields[name] ?? "") !== "")
      .map(({ name, type }) => [name, typedValue(fields[name]!, type)]),
  );
}

function Answer({ answer }: { answer: Accepted }) {
  return (
    <Alert color="teal" icon={<IconCheck />} title={`Acknowledged at offset ${answer.first}`} role="status">
      {answer.guarantee}
    </Alert>
  );
}

function Headers({ headers, onChange }: { headers: Header[]; onChange: (headers: Header[]) => void }) {
  const change = (index: number, part: Partial<Header>) =>
    onChange(headers.with(index, { ...headers[index]!, ...part }));
  return (
    <Stack gap={4}>
      {headers.map((header, index) => (
        // biome-ignore lint/suspicious/noArrayIndexKey: a header has nothing else to be known by while it is typed
        <Group key={index} gap="xs" wrap="nowrap">
          <TextInput
            aria-label={`Name of header ${index + 1}`}
            placeholder="name"
            value={header.name}
            onChange={({ currentTarget }) => change(index, { name: currentTarget.value })}
          />
          <TextInput
            aria-label={`Value of header ${index + 1}`}
            placeholder="value"
            value={header.value}
            onChange={({ currentTarget }) => change(index, { value: currentTarget.value })}
            style={{ flex: 1 }}
          />
          <ActionIcon
            variant="subtle"
            color="gray"
            aria-label={`Remove header ${index + 1}`}
            onClick={() => onChange(headers.toSpliced(index, 1))}
          >
            <IconX size={16} />
          </ActionIcon>
        </Group>
      ))}
      <Group>
        <Button
          variant="subtle"
          size="compact-sm"
          leftSection={<IconPlus size={14} />}
          onClick={() => onChange([...headers, { name: "", value: "" }])}
        >
          Add header
        </Button>
      </Group>
    </Stack>
  );
}
