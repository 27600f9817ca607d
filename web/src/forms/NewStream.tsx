import { Button, Group, Modal, Stack, Text, Textarea, TextInput } from "@mantine/core";
import { useQueryClient } from "@tanstack/react-query";
import { useState } from "react";
import { problemsOf } from "#/api/client";
import { useSave } from "#/api/documents";
import { KINDS } from "#/api/kinds";
import { done } from "#/components/notify";
import { Problems } from "#/components/Problems";
import { useDerivedId } from "#/documents/editing/analysis";
import { problemsBelow, problemsLeft, sentence } from "./paths";

interface Props {
  /** What was typed where a stream is named. */
  name: string;
  /** The columns of the events that the stream is for. */
  columns: readonly { name: string; type: string }[];
  onCreated: (id: string) => void;
  onClose: () => void;
}

/** Creates a stream where one is referred to. */
export function NewStream({ name: given, columns, onCreated, onClose }: Props) {
  const [name, setName] = useState(given);
  // The columns may become known while the dialog is open.
  const [typed, setSchema] = useState<string | null>(null);
  const schema = typed ?? columns.map((each) => `${quoted(each.name)} ${each.type}`).join(", ");
  const { id, problems } = useDerivedId(name);
  const save = useSave();
  const queries = useQueryClient();
  const refused = save.error ? problemsOf(save.error) : [];
  const create = async () => {
    const spec = schema.trim() === "" ? {} : { schema: schema.trim() };
    const document = { kind: "Stream", metadata: { name }, spec };
    const saved = await save.mutateAsync({ kind: KINDS.Stream, document });
    void queries.invalidateQueries({ queryKey: ["validate"] }); // it was missing until now
    done(`Created stream ${saved.id}`);
    onCreated(saved.id);
  };
  return (
    <Modal opened onClose={onClose} title="New stream" closeButtonProps={{ "aria-label": "Close" }}>
      <Stack
        component="form"
        onSubmit={(event) => {
          event.preventDefault();
          event.stopPropagation(); // the page below may be a form, too
          if (id !== undefined) void create().catch(() => undefined);
        }}
      >
        <TextInput
          label="Name"
          data-autofocus
          value={name}
          error={sentence([...problems, ...problemsBelow(refused, "metadata")])}
          onChange={({ currentTarget }) => setName(currentTarget.value)}
        />
        <Text size="sm" c="dimmed" aria-live="polite">
          {id === undefined ? (
            "The id is derived from the name and can't be changed later."
          ) : (
            <>
              ID: <code>{id}</code> (can't be changed later)
            </>
          )}
        </Text>
        <Textarea
          label="Schema"
          description="Columns as Spark DDL. Empty: raw events. Other settings have their defaults."
          autosize
          minRows={2}
          maxRows={10}
          spellCheck={false}
          styles={{ input: { fontFamily: "var(--mantine-font-family-monospace)" } }}
          value={schema}
          error={sentence(problemsBelow(refused, "spec.schema"))}
          onChange={({ currentTarget }) => setSchema(currentTarget.value)}
        />
        <Problems problems={problemsLeft(refused, "", ["metadata", "spec.schema"])} title="Not created" />
        <Group justify="flex-end">
          <Button variant="default" onClick={onClose}>
            Cancel
          </Button>
          <Button type="submit" loading={save.isPending} disabled={id === undefined}>
            Create
          </Button>
        </Group>
      </Stack>
    </Modal>
  );
}

const quoted = (name: string) => (/^\w+$/.test(name) ? name : `\`${name.replaceAll("`", "``")}\``);
