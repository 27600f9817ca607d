import { Button, Group, Modal, Stack, Text } from "@mantine/core";
import { lazy, Suspense } from "react";
import { Loading } from "#/components/Page";
import { PlanDialog } from "../PlanDialog";
import type { Conflict, Saving } from "./saving";

const DiffView = lazy(() => import("#/editors/DiffView"));

interface Props {
  saving: Saving;
  /** What the person has, as text. */
  text: string;
  /** Goes on from what somebody else has saved: with its text, or with the person's own. */
  onRebase: (conflict: Conflict, keep: "theirs" | "mine") => void;
}

/** What the person has to decide, or to know, before a save goes on. */
export function SaveQuestions({ saving, text, onRebase }: Props) {
  const { kind, id, question } = saving;
  const close = () => saving.ask(null);
  if (question?.about === "plan" && id !== null) {
    return (
      <PlanDialog
        kind={kind}
        id={id}
        document={saving.document}
        onApply={(acceptReset, from) => saving.attempt({ acceptReset, from })}
        onClose={close}
      />
    );
  }
  if (question?.about !== "conflict") return null;
  const { theirs, tag, revision } = question;
  return (
    <Modal
      opened
      onClose={close}
      title="This document was changed by someone else"
      size="80rem"
      closeButtonProps={{ "aria-label": "Close" }}
    >
      <Stack>
        <Text size="sm">
          Revision {revision} was saved while you were editing. Compare the saved version with yours.
        </Text>
        <Suspense fallback={<Loading />}>
          <DiffView before={theirs} after={text} language="yaml" labels={["Saved version", "Your version"]} />
        </Suspense>
        <Group justify="flex-end">
          <Button variant="default" onClick={close}>
            Keep editing
          </Button>
          <Button
            variant="default"
            onClick={() => {
              onRebase(question, "theirs");
              close();
            }}
          >
            Use the saved version
          </Button>
          <Button
            color="red"
            loading={saving.isSaving}
            onClick={() => {
              onRebase(question, "mine");
              void saving.apply({ tag });
            }}
          >
            Overwrite with mine
          </Button>
        </Group>
      </Stack>
    </Modal>
  );
}
