import { Button, Group, Modal, Stack, Text } from "@mantine/core";
import { lazy, Suspense } from "react";
import { failed } from "#/components/notify";
import { Loading } from "#/components/Page";
import { PlanDialog } from "../PlanDialog";
import type { Question } from "./saving";
import type { Editing } from "./useEditing";

const DiffView = lazy(() => import("#/editors/DiffView"));

/** What the person has to see, or to decide, before a save goes on. */
export function SaveQuestions({ editing }: { editing: Editing }) {
  const { kind, id, saving } = editing;
  const { question } = saving;
  const close = () => saving.ask(null);
  if (question?.about === "conflict") return <Conflict editing={editing} question={question} />;
  if (question?.about !== "plan" || id === null) return null;
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

interface ConflictProps {
  editing: Editing;
  question: Extract<Question, { about: "conflict" }>;
}

function Conflict({ editing, question: { theirs, tag, revision } }: ConflictProps) {
  const { saving, text } = editing;
  const close = () => saving.ask(null);
  const take = () => {
    editing.rebase(theirs, tag);
    editing.write(theirs);
    close();
  };
  const overwrite = () => {
    editing.rebase(theirs, tag);
    saving.attempt({ tag }).catch((error: unknown) => failed("It was not saved", error));
  };
  return (
    <Modal
      opened
      onClose={close}
      title="Somebody else has changed it meanwhile"
      size="80rem"
      closeButtonProps={{ "aria-label": "Close" }}
    >
      <Stack>
        <Text size="sm">
          Revision {revision} was saved after you began. Here is what is saved beside what you have.
        </Text>
        <Suspense fallback={<Loading />}>
          <DiffView
            before={theirs}
            after={text}
            language="yaml"
            labels={["What is saved", "What you have"]}
          />
        </Suspense>
        <Group justify="flex-end">
          <Button variant="default" onClick={close}>
            Go on editing
          </Button>
          <Button variant="default" onClick={take}>
            Take what is saved
          </Button>
          <Button color="red" onClick={overwrite}>
            Save mine over it
          </Button>
        </Group>
      </Stack>
    </Modal>
  );
}
