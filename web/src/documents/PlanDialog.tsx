import { Alert, Autocomplete, Button, Checkbox, Group, Modal, Stack, Text } from "@mantine/core";
import { useState } from "react";
import { ApiError } from "#/api/client";
import type { Kind } from "#/api/kinds";
import { plural } from "#/components/format";
import { Loading } from "#/components/Page";
import { Failure, Problems } from "#/components/Problems";
import { Entries } from "#/flows/revisions/Entries";
import { Effects } from "./Effects";
import { type Plan, rebuildFrom, usePlan, verdict } from "./planning";

interface Props {
  kind: Kind;
  id: string;
  /** The document as it would be saved. */
  document: object;
  /** Saves it; what it throws is shown in the dialog. */
  onApply: (acceptReset: boolean, from?: string) => void | Promise<void>;
  onClose: () => void;
  /** What the dialog is called, and its button, if it is not about saving an edit. */
  title?: string;
  action?: string;
}

/** What an edit would do, shown before it is done. */
export function PlanDialog({ kind, id, document, onApply, onClose, title, action }: Props) {
  const plan = usePlan(kind, id, document);
  return (
    <Modal
      opened
      onClose={onClose}
      title={title ?? "Review changes"}
      size="lg"
      closeButtonProps={{ "aria-label": "Close" }}
    >
      {plan.isPending && <Loading what="Analyzing the changes" />}
      {plan.error && <Failure error={plan.error} title="Could not analyze the changes" />}
      {plan.data && <Planned plan={plan.data} onApply={onApply} onClose={onClose} action={action} />}
    </Modal>
  );
}

interface PlannedProps extends Pick<Props, "onApply" | "onClose" | "action"> {
  plan: Plan;
}

function Planned({ plan, onApply, onClose, action = "Save" }: PlannedProps) {
  const [isAccepted, setAccepted] = useState(false);
  const [from, setFrom] = useState("");
  const [isBusy, setBusy] = useState(false);
  const [error, setError] = useState<unknown>();
  const ownReset = plan.steps.some((step) => step.effect === "resets");
  const apply = async () => {
    setBusy(true);
    setError(undefined);
    try {
      await onApply(plan.resets && isAccepted, ownReset && from !== "" ? from : undefined);
    } catch (thrown) {
      setError(thrown);
    } finally {
      setBusy(false);
    }
  };
  return (
    <Stack>
      <Problems problems={plan.errors} title="The document can't be saved" />
      <Problems problems={plan.warnings} level="warning" />
      {plan.valid && (
        <>
          <Text fw={600}>{verdict(plan)}</Text>
          <Effects steps={plan.steps} />
          {plan.dependents.map((each) => (
            <Effects
              key={`${each.kind}/${each.name}`}
              title={`${each.kind} ${each.name} refers to this document`}
              steps={each.steps}
            />
          ))}
          <details>
            <summary>{`${plural(plan.changes.length, "field")} changed`}</summary>
            <Entries entries={plan.changes} />
          </details>
          {plan.resets && (
            <Checkbox
              label="I understand this state will be discarded"
              checked={isAccepted}
              onChange={({ currentTarget }) => setAccepted(currentTarget.checked)}
            />
          )}
          {ownReset && (
            <Autocomplete
              label="Start reading at"
              description="Reading again from an earlier position rebuilds the discarded state and delivers those events again."
              placeholder="current position"
              data={[...new Set([...rebuildFrom(plan.steps), "earliest", "latest"])]}
              value={from}
              onChange={setFrom}
            />
          )}
        </>
      )}
      {isBusy && (
        <Text size="sm" c="dimmed" role="status">
          Saving and starting the new revision. If it fails to start, it is rolled back.
        </Text>
      )}
      <Refusal error={error} />
      <Group justify="flex-end">
        <Button variant="default" onClick={onClose}>
          Cancel
        </Button>
        <Button
          data-autofocus
          loading={isBusy}
          color={plan.resets ? "red" : undefined}
          disabled={!plan.valid || (plan.resets && !isAccepted)}
          onClick={() => void apply()}
        >
          {plan.resets ? `${action} and reset` : action}
        </Button>
      </Group>
    </Stack>
  );
}

function Refusal({ error }: { error: unknown }) {
  if (error instanceof ApiError && error.code === "rolled_back") {
    return (
      <Alert color="red" title="The new revision failed to start and was rolled back">
        <Text size="sm" mb="xs">
          The previous revision is running again. No events were lost.
        </Text>
        <Problems problems={error.problems} />
      </Alert>
    );
  }
  return <Failure error={error} title="Not saved" />;
}
