import {
  Alert,
  Button,
  Checkbox,
  FileButton,
  Group,
  Modal,
  SegmentedControl,
  Stack,
  Text,
  Textarea,
} from "@mantine/core";
import { useDebouncedValue } from "@mantine/hooks";
import { IconFileUpload } from "@tabler/icons-react";
import { keepPreviousData, useQuery, useQueryClient } from "@tanstack/react-query";
import { type DragEvent, useState } from "react";
import { ApiError, problemsOf } from "#/api/client";
import { bytes, plural } from "#/components/format";
import { done, failed } from "#/components/notify";
import { Problems } from "#/components/Problems";
import { byAction, type ImportResult, importBundle, type Mode, placed, wouldReset } from "./bundle";
import { ImportPreview } from "./ImportPreview";
import { ImportProgress } from "./ImportProgress";

/** A longer text is not shown: to edit it in a page would be slow. */
const SHOWN = 200_000;

const EXAMPLE = `kind: Stream
metadata: {name: Orders}
spec: {}`;

/** Takes documents or a whole bundle, shows what they would change, and applies that. */
export function UploadDialog({ opened, onClose }: { opened: boolean; onClose: () => void }) {
  return (
    <Modal
      opened={opened}
      onClose={onClose}
      title="Upload documents"
      size="xl"
      closeButtonProps={{ "aria-label": "Close" }}
    >
      {opened && <Body onClose={onClose} />}
    </Modal>
  );
}

function Body({ onClose }: { onClose: () => void }) {
  const [text, setText] = useState("");
  const [file, setFile] = useState<string | null>(null);
  const [mode, setMode] = useState<Mode>("merge");
  const [settled] = useDebouncedValue(text, 400);
  const [id, setId] = useState("");
  const preview = useQuery({
    queryKey: ["import", mode, settled],
    queryFn: ({ signal }) => {
      const number = crypto.randomUUID();
      setId(number);
      return importBundle({ text: settled, mode, dryRun: true, id: number, signal });
    },
    enabled: settled.trim() !== "",
    placeholderData: keepPreviousData,
    gcTime: 0,
    staleTime: Number.POSITIVE_INFINITY,
    retry: false, // a person waits: what went wrong is shown at once
  });
  const take = async (chosen: File | null | undefined) => {
    if (!chosen) return;
    setText(await chosen.text());
    setFile(chosen.name);
  };
  const drop = (event: DragEvent) => {
    event.preventDefault();
    void take(event.dataTransfer.files[0]);
  };
  const isOld = settled !== text || preview.isPlaceholderData;
  return (
    <Stack>
      <Text size="sm">
        Upload a downloaded bundle or any documents as YAML or JSON. You review the changes first; then either
        all of them are applied or none.
      </Text>
      <Group>
        <FileButton onChange={take} accept=".yaml,.yml,.json">
          {(props) => (
            <Button {...props} variant="default" leftSection={<IconFileUpload size={16} />}>
              Choose a file
            </Button>
          )}
        </FileButton>
        <Text size="sm" c="dimmed">
          {file ?? "or drop a file here, or paste text"}
        </Text>
      </Group>
      {text.length > SHOWN ? (
        <Group gap="xs">
          <Text size="sm">
            {file ?? "The text"} has {bytes(text.length)} and is not shown here.
          </Text>
          <Button
            variant="subtle"
            size="compact-sm"
            onClick={() => {
              setText("");
              setFile(null);
            }}
          >
            Remove
          </Button>
        </Group>
      ) : (
        <Textarea
          label="Documents"
          value={text}
          placeholder={EXAMPLE}
          onChange={({ currentTarget }) => setText(currentTarget.value)}
          onDrop={drop}
          onDragOver={(event) => event.preventDefault()}
          autosize
          minRows={6}
          maxRows={12}
          spellCheck={false}
          data-autofocus
          styles={{ input: { fontFamily: "var(--mantine-font-family-monospace)", fontSize: 13 } }}
        />
      )}
      <Stack gap={4}>
        <SegmentedControl
          aria-label="Documents that are not in the upload"
          value={mode}
          onChange={(value) => setMode(value as Mode)}
          data={[
            { value: "merge", label: "Merge" },
            { value: "replace", label: "Replace everything" },
          ]}
        />
        <Text size="sm" c="dimmed">
          {mode === "merge"
            ? "Documents that are not in the upload stay unchanged."
            : "Documents that are not in the upload are deleted, including streams and their events."}
        </Text>
      </Stack>
      {preview.isFetching && <ImportProgress id={id} what="Checking" />}
      {settled.trim() !== "" && preview.error && !preview.isFetching && (
        <>
          <Problems problems={placed(problemsOf(preview.error))} title="These documents can't be imported" />
          <Group>
            <Button variant="default" onClick={() => void preview.refetch()}>
              Check again
            </Button>
          </Group>
        </>
      )}
      {preview.data && !preview.error && settled.trim() !== "" && (
        <Ready
          key={`${mode} ${settled}`}
          {...{ text: settled, mode, isOld, onClose }}
          planned={preview.data}
        />
      )}
    </Stack>
  );
}

interface ReadyProps {
  text: string;
  mode: Mode;
  planned: ImportResult;
  isOld: boolean;
  onClose: () => void;
}

function Ready({ text, mode, planned, isOld, onClose }: ReadyProps) {
  const queries = useQueryClient();
  const [refusal, setRefusal] = useState<ApiError | null>(null);
  const [acceptReset, setAcceptReset] = useState(false);
  const [acceptDeletes, setAcceptDeletes] = useState(false);
  const [busy, setBusy] = useState<string | null>(null);
  const changes = byAction(planned.changes);
  const total = planned.changes.length - changes.unchanged.length;
  const needsReset = refusal !== null && wouldReset(refusal);
  const apply = async () => {
    const id = crypto.randomUUID();
    setBusy(id);
    setRefusal(null);
    try {
      await importBundle({ text, mode, dryRun: false, acceptReset, id });
      done(`Imported: ${sentence(planned)}.`);
      onClose();
    } catch (error) {
      if (error instanceof ApiError) setRefusal(error);
      else failed("Nothing was imported", error);
    } finally {
      setBusy(null);
      void queries.invalidateQueries();
    }
  };
  return (
    <Stack aria-busy={isOld}>
      <ImportPreview changes={planned.changes} />
      {refusal && !needsReset && (
        <Problems problems={placed(refusal.problems)} title="Nothing was imported" />
      )}
      {needsReset && (
        <>
          <Problems
            problems={placed(refusal.problems).map((problem) => ({ ...problem, hint: null }))}
            level="warning"
            title="Running flows would lose state or their position"
          />
          <Checkbox
            label="I understand that the parts listed above start over"
            checked={acceptReset}
            onChange={({ currentTarget }) => setAcceptReset(currentTarget.checked)}
          />
        </>
      )}
      {changes.delete.length > 0 && (
        <Alert color="red" variant="light">
          <Checkbox
            label={`Delete ${plural(changes.delete.length, "document")} not in the upload. The events of deleted streams can't be restored.`}
            checked={acceptDeletes}
            onChange={({ currentTarget }) => setAcceptDeletes(currentTarget.checked)}
          />
        </Alert>
      )}
      {busy !== null && <ImportProgress id={busy} what="Importing" />}
      <Group justify="flex-end">
        <Button variant="default" onClick={onClose}>
          Cancel
        </Button>
        <Button
          loading={busy !== null}
          disabled={
            total === 0 ||
            isOld ||
            (needsReset && !acceptReset) ||
            (changes.delete.length > 0 && !acceptDeletes)
          }
          onClick={apply}
        >
          {total === 0 ? "Nothing to apply" : `Apply ${plural(total, "change")}`}
        </Button>
      </Group>
    </Stack>
  );
}

function sentence({ changes }: ImportResult): string {
  const found = byAction(changes);
  const parts = [
    [found.create, "created"],
    [found.update, "updated"],
    [found.delete, "deleted"],
  ] as const;
  return parts
    .filter(([some]) => some.length > 0)
    .map(([some, what]) => `${some.length} ${what}`)
    .join(", ");
}
