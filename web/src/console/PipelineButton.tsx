import { Button, Text, Tooltip } from "@mantine/core";
import { modals } from "@mantine/modals";
import { IconArrowsRightLeft } from "@tabler/icons-react";
import { useNavigate } from "react-router";
import { useAllowed } from "#/api/session";
import { dropDraft, readDraft } from "#/builder/drafts";
import { pipelineOf, whyNoPipeline } from "./pipeline";

/** Opens the builder with the query as an sql step on its stream. */
export function PipelineButton({ sql }: { sql: string }) {
  const navigate = useNavigate();
  const mayEdit = useAllowed("editor");
  if (!mayEdit) return null;
  const reason = whyNoPipeline(sql);
  const open = () => {
    dropDraft("pipelines", null);
    navigate("/pipelines/new", { state: { text: pipelineOf(sql) } });
  };
  const ask = () => {
    if (readDraft("pipelines", null) === null) return open();
    modals.openConfirmModal({
      title: "Replace the draft of a new pipeline?",
      children: <Text size="sm">The builder has an unsaved draft of a new pipeline. It would be lost.</Text>,
      labels: { confirm: "Replace the draft", cancel: "Cancel" },
      confirmProps: { color: "red" },
      onConfirm: open,
    });
  };
  return (
    <Tooltip
      label={reason ?? "Opens the builder with the query as an sql step. A step works event by event."}
      multiline
      maw={280}
    >
      <Button
        variant="default"
        leftSection={<IconArrowsRightLeft size={16} />}
        data-disabled={reason !== null || undefined}
        aria-disabled={reason !== null}
        onClick={() => reason === null && ask()}
      >
        Make this a pipeline
      </Button>
    </Tooltip>
  );
}
