import { Alert, Button, Group, Text } from "@mantine/core";
import { useState } from "react";
import { moment } from "#/components/format";
import { Problems } from "#/components/Problems";
import type { Opened } from "./opening";
import type { Work } from "./useWorkshop";

interface Props {
  work: Work;
  mode: "canvas" | "yaml";
  opened: Opened;
  onYaml: () => void;
  onStartOver: () => void;
}

/** What one should know about the state of the document: a draft was found, a save refused, a text broken. */
export function Notices({ work, mode, opened, onYaml, onStartOver }: Props) {
  const { state, saving } = work;
  const [isNoticed, setNoticed] = useState(opened.draftOf === null);
  return (
    <>
      {!isNoticed && (
        <Alert
          color="blue"
          variant="light"
          withCloseButton
          closeButtonLabel="Close"
          onClose={() => setNoticed(true)}
        >
          <Group justify="space-between" gap="xs">
            <Text size="sm">Restored your unsaved draft from {moment(opened.draftOf)}.</Text>
            <Button size="compact-sm" variant="default" onClick={onStartOver}>
              Discard draft
            </Button>
          </Group>
        </Alert>
      )}
      {state.fault && mode === "canvas" && (
        <Alert
          color="yellow"
          variant="light"
          title="The YAML has an error: the canvas shows the last valid version"
        >
          <Group justify="space-between" gap="xs">
            <Text size="sm">
              Line {state.fault.line}: {state.fault.message}. Your text is kept.
            </Text>
            <Group gap="xs">
              <Button size="compact-sm" onClick={onYaml}>
                Fix the YAML
              </Button>
              <Button size="compact-sm" variant="default" onClick={work.restore}>
                Revert to the valid version
              </Button>
            </Group>
          </Group>
        </Alert>
      )}
      {saving.refused && (
        <Problems
          title="Not saved"
          problems={[
            {
              code: "refused",
              message:
                saving.refused.length === 1
                  ? "1 error is highlighted in the form"
                  : `${saving.refused.length} errors are highlighted in the form`,
              path: null,
              hint: "You can save an invalid document as paused and fix it later.",
            },
          ]}
        />
      )}
    </>
  );
}
