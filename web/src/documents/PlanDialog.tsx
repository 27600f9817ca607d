import { Alert, Autocomplete, Button, Checkbox, Group, Modal, Stack, Text } from "@mantine/core";
import { useState } from "react";
import { ApiError } from "#/api/client";
import type { Kind } from "#/api/kinds";
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
      title={title ?? `What saving this ${kind.one} does`}
      size="lg"
      closeButtonProps={{ "aria-label": "Close" }}
    >
      {plan.isPending && <Loading what="Finding out what it does" />}
      {plan.error && <Failure error={plan.error} title="What it does could not be found out" />}
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
      <Problems problems={plan.errors} title="It cannot be saved like this" />
      <Problems problems={plan.warnings} level="warning" />
      {plan.valid && (
        <>
          <Text fw={600}>{verdict(plan)}</Text>
          <Effects steps={plan.steps} />
          {plan.dependents.map((each) => (
            <Effects
              key={`${each.kind}/${each.name}`}
              title={`${each.kind} ${each.name}, which refers to it`}
              steps={each.steps}
            />
          ))}
          <details>
            <summary>
              {plan.changes.length === 1 ? "One field differs" : `${plan.changes.length} fields differ`}
            </summary>
            <Entries entries={plan.changes} />
          </details>
          {plan.resets && (
            <Checkbox
              label="I accept that this is lost"
              checked={isAccepted}
              onChange={({ currentTarget }) => setAccepted(currentTarget.checked)}
            />
          )}
          {ownReset && (
            <Autocomplete
              label="Begin in the stream at"
              description="Reading again from an earlier position rebuilds what is lost, and delivers those events again."
              placeholder="where it is now"
              data={[...new Set([...rebuildFrom(plan.steps), "earliest", "latest"])]}
              value={from}
              onChange={setFrom}
            />
          )}
        </>
      )}
      {isBusy && (
        <Text size="sm" c="dimmed" role="status">
          Saving it, and waiting for the new revision to start. If it does not start, it is rolled back.
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
      <Alert color="red" title="It did not start, and was rolled back">
        <Text size="sm" mb="xs">
          The new revision failed at once. The one before it runs again, and nothing is lost.
        </Text>
        <Problems problems={error.problems} />
      </Alert>
    );
  }
  return <Failure error={error} title="It was not saved" />;
}
