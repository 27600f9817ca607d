import { Button, Group, Modal, Stack, Text, TextInput } from "@mantine/core";
import { useEffect } from "react";
import { useDocuments } from "#/api/documents";
import { kindAt } from "#/api/kinds";
import { useDerivedId } from "#/documents/editing/analysis";
import { problemsBelow, sentence } from "#/forms/paths";
import { useBuilder } from "./context";
import { setMetadata } from "./model";
import type { Work } from "./useWorkshop";

/** Asks for the name of a new document before its first save, because its id can't be changed later. */
export function NameDialog({ work: { saving }, onClose }: { work: Work; onClose: () => void }) {
  const { place, value, edit } = useBuilder();
  const kind = kindAt(place)!;
  const name = String(value.metadata?.name ?? "");
  const { id, problems } = useDerivedId(name);
  const { data } = useDocuments(kind);
  const isTaken = id !== undefined && (data?.some((each) => each.id === id) ?? false);
  const refused = problemsBelow(saving.refused ?? [], "metadata");
  const error = isTaken ? `There is already a ${kind.one} with this id` : sentence([...problems, ...refused]);
  // Other problems are shown in the builder, behind the dialog.
  const isElsewhere = saving.refused !== null && refused.length === 0;
  useEffect(() => {
    if (isElsewhere) onClose();
  }, [isElsewhere, onClose]);
  return (
    <Modal opened onClose={onClose} title={`Save ${kind.one}`} closeButtonProps={{ "aria-label": "Close" }}>
      <Stack
        component="form"
        onSubmit={(event) => {
          event.preventDefault();
          if (id !== undefined && !isTaken) void saving.apply();
        }}
      >
        <TextInput
          label="Name"
          data-autofocus
          value={name}
          error={error}
          onChange={({ currentTarget }) => {
            const next = { ...value.metadata, name: currentTarget.value };
            edit((text) => setMetadata(text, next), "metadata");
          }}
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
        <Group justify="flex-end">
          <Button variant="default" onClick={onClose}>
            Cancel
          </Button>
          <Button type="submit" loading={saving.isSaving} disabled={id === undefined || isTaken}>
            Save
          </Button>
        </Group>
      </Stack>
    </Modal>
  );
}
