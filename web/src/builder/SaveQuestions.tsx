import { Button, Group, Modal, Stack, Text } from "@mantine/core";
import { lazy, Suspense } from "react";
import { Loading } from "#/components/Page";
import { PlanDialog } from "#/documents/PlanDialog";
import type { Question } from "./saving";
import type { Work } from "./useWorkshop";

const DiffView = lazy(() => import("#/editors/DiffView"));

/** What the person has to decide, or to know, before a save goes on. */
export function SaveQuestions({ work }: { work: Work }) {
  const { saving, builder } = work;
  const { question } = saving;
  const close = () => saving.ask(null);
  if (question?.about === "conflict") return <Conflict work={work} question={question} onClose={close} />;
  if (question?.about === "plan" && builder.id !== null) {
    return (
      <PlanDialog
        kind={saving.kind}
        id={builder.id}
        document={saving.document}
        onApply={(acceptReset, from) => saving.attempt({ acceptReset, from })}
        onClose={close}
      />
    );
  }
  return null;
}

interface ConflictProps {
  work: Work;
  question: Extract<Question, { about: "conflict" }>;
  onClose: () => void;
}

function Conflict({ work, question, onClose }: ConflictProps) {
  const { theirs, tag, revision } = question;
  const { state, saving } = work;
  return (
    <Modal
      opened
      onClose={onClose}
      title="Somebody else has changed it meanwhile"
      size="80rem"
      closeButtonProps={{ "aria-label": "Close" }}
    >
      <Stack>
        <Text size="sm">
          Revision {revision} was saved after you began. On the left is what is saved, on the right what you
          have.
        </Text>
        <Suspense fallback={<Loading />}>
          <DiffView
            before={theirs}
            after={state.history.text}
            language="yaml"
            labels={["What is saved", "What you have"]}
          />
        </Suspense>
        <Group justify="flex-end">
          <Button variant="default" onClick={onClose}>
            Go on editing
          </Button>
          <Button
            variant="default"
            onClick={() => {
              work.setTag(tag);
              work.load(theirs);
              onClose();
            }}
          >
            Take what is saved
          </Button>
          <Button
            color="red"
            loading={saving.isSaving}
            onClick={() => {
              work.setTag(tag);
              void saving.apply({ tag });
            }}
          >
            Save mine over it
          </Button>
        </Group>
      </Stack>
    </Modal>
  );
}
