import { Code, Text } from "@mantine/core";
import type { JsonSchema } from "#/forms/SchemaForm";
import { SchemaForm } from "#/forms/SchemaForm";
import type { Editing } from "./useEditing";

/** Who the document is: its name with the id that comes of it, notes, labels. */
export function Identity({ editing, root }: { editing: Editing; root: JsonSchema }) {
  const { id, derivedId, metadata, setMetadata, problems, fault } = editing;
  return (
    <div>
      <SchemaForm
        schema={{ $ref: "#/components/schemas/Metadata" }}
        root={root}
        value={metadata}
        onChange={setMetadata}
        path="metadata"
        problems={problems}
        first={["name", "description"]}
        context={fault ? READ_ONLY : undefined}
      />
      <Text size="sm" c="dimmed" mt="xs" aria-live="polite">
        {id !== null ? (
          <>
            ID: <Code>{id}</Code> (can't be changed)
          </>
        ) : (
          derivedId && (
            <>
              ID: <Code>{derivedId}</Code> (can't be changed later)
            </>
          )
        )}
      </Text>
    </div>
  );
}

const READ_ONLY = { readOnly: true };
