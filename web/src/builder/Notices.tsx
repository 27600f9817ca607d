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
            <Text size="sm">Your draft of {moment(opened.draftOf)} is back: it was not saved yet.</Text>
            <Button size="compact-sm" variant="default" onClick={onStartOver}>
              Discard it
            </Button>
          </Group>
        </Alert>
      )}
      {state.fault && mode === "canvas" && (
        <Alert color="yellow" variant="light" title="The canvas shows the last text that could be read">
          <Group justify="space-between" gap="xs">
            <Text size="sm">
              Line {state.fault.line} of the text: {state.fault.message}. Your text is kept.
            </Text>
            <Group gap="xs">
              <Button size="compact-sm" onClick={onYaml}>
                Mend the text
              </Button>
              <Button size="compact-sm" variant="default" onClick={work.mend}>
                Go back to what is shown
              </Button>
            </Group>
          </Group>
        </Alert>
      )}
      {saving.refused && (
        <Problems
          title="It was not saved"
          problems={[
            {
              code: "refused",
              message:
                saving.refused.length === 1
                  ? "One thing is wrong; it is marked at its place"
                  : `${saving.refused.length} things are wrong; they are marked at their places`,
              path: null,
              hint: "What is not valid can be saved as paused, and mended later.",
            },
          ]}
        />
      )}
    </>
  );
}
