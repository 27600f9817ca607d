import { Alert, Anchor, Button, Checkbox, Group, List, Modal, Progress, Stack, Text } from "@mantine/core";
import { IconAlertTriangle } from "@tabler/icons-react";
import { useQuery, useQueryClient } from "@tanstack/react-query";
import { useRef, useState } from "react";
import { Link } from "react-router";
import { type AnyDocument, KINDS, type KindName, keyOf, pageOf } from "#/api/kinds";
import { plural } from "#/components/format";
import { done, failed } from "#/components/notify";
import { Loading } from "#/components/Page";
import { Failure, Problems } from "#/components/Problems";
import {
  deleteAll,
  forget,
  lookUp,
  losses,
  MOST_LOOKED_UP,
  type Outcome,
  type Plan,
  type Referrer,
  restore,
} from "./deletion";

interface Props {
  /** What should be deleted; null while nothing should. */
  documents: readonly AnyDocument[] | null;
  onClose: () => void;
  /** Called when all of it is gone. */
  onDeleted?: () => void;
}

/** Asks before documents are deleted, shows who refers to them, and tells what became of each. */
export function DeleteDialog({ documents, onClose, onDeleted }: Props) {
  return (
    <Modal
      opened={documents !== null}
      onClose={onClose}
      title={documents ? `Delete ${named(documents)}?` : ""}
      size="lg"
      closeButtonProps={{ "aria-label": "Close" }}
    >
      {documents && <Body key={documents.map(keyOf).join()} {...{ documents, onClose, onDeleted }} />}
    </Modal>
  );
}

function Body({ documents, onClose, onDeleted }: Props & { documents: readonly AnyDocument[] }) {
  const plan = useQuery({
    queryKey: ["deletion", ...documents.map(keyOf)],
    queryFn: () => lookUp(documents),
    gcTime: 0,
  });
  const [others, setOthers] = useState(false);
  const run = useDeletion(onClose, onDeleted);
  if (plan.error) return <Failure error={plan.error} title="Could not check for references" />;
  if (!plan.data) return <Loading what="Checking for documents that refer to it" />;
  if (run.outcomes !== null) return <Outcomes {...run} outcomes={run.outcomes} onClose={onClose} />;
  const { held, dependents } = plan.data;
  const free = documents.filter((each) => !held.has(keyOf(each)));
  const doomed = others ? [...documents, ...dependents] : free;
  return (
    <Stack>
      {held.size > 0 && <Held plan={plan.data} />}
      {documents.length > MOST_LOOKED_UP && (
        <Text size="sm">Those that other documents refer to will stay, and be listed.</Text>
      )}
      {dependents.length > 0 && (
        <Checkbox
          checked={others}
          onChange={({ currentTarget }) => setOthers(currentTarget.checked)}
          label={`Also delete the documents that refer to ${documents.length === 1 ? "it" : "them"}: ${dependents
            .map((each) => `${KINDS[each.kind].one} ${each.name}`)
            .join(", ")}`}
        />
      )}
      {doomed.length > 0 &&
        losses(doomed).map((loss) => (
          <Text size="sm" key={loss}>
            {loss}
          </Text>
        ))}
      <Group justify="flex-end">
        <Button variant="default" onClick={onClose} data-autofocus>
          Keep
        </Button>
        <Button color="red" disabled={doomed.length === 0} onClick={() => run.start(doomed)}>
          {doomed.length > 1 ? `Delete ${plural(doomed.length, "document")}` : "Delete"}
        </Button>
      </Group>
    </Stack>
  );
}

function Held({ plan: { held, documents } }: { plan: Plan }) {
  const alone = documents.length === 1;
  return (
    <Alert
      variant="outline"
      color="orange"
      icon={<IconAlertTriangle />}
      title={alone ? "In use" : `${held.size} are in use`}
    >
      <Text size="sm">
        {alone
          ? "These documents refer to it. Change or delete them first:"
          : "These are kept because other documents refer to them. Change or delete the referring documents first:"}
      </Text>
      {documents
        .filter((each) => held.has(keyOf(each)))
        .map((document) => (
          <div key={keyOf(document)}>
            {!alone && (
              <Text size="sm" fw={600} mt="xs">
                {document.name}
              </Text>
            )}
            <Referrers referrers={held.get(keyOf(document)) ?? []} />
          </div>
        ))}
    </Alert>
  );
}

/** Who refers to something, and where, as links. */
export function Referrers({ referrers }: { referrers: readonly Referrer[] }) {
  return (
    <List size="sm">
      {referrers.map(({ kind, id, name, path }) => (
        <List.Item key={`${kind}/${id} ${path}`}>
          {KINDS[kind as KindName]?.one ?? kind}{" "}
          <Anchor component={Link} to={pageOf(kind as KindName, id)} size="sm">
            {name}
          </Anchor>{" "}
          <Text span size="sm" c="dimmed">
            at {path}
          </Text>
        </List.Item>
      ))}
    </List>
  );
}

function useDeletion(onClose: () => void, onDeleted?: () => void) {
  const queries = useQueryClient();
  const [outcomes, setOutcomes] = useState<Outcome[] | null>(null);
  const [total, setTotal] = useState(0);
  const [over, setOver] = useState(false);
  const cancelled = useRef(false);
  const start = async (doomed: readonly AnyDocument[]) => {
    const told: Outcome[] = [];
    setTotal(doomed.length);
    setOutcomes([]);
    await deleteAll(
      doomed,
      (outcome) => {
        told.push(outcome);
        setOutcomes([...told]);
      },
      () => cancelled.current,
    );
    const gone = told.filter(({ problems }) => problems.length === 0).map(({ document }) => document);
    forget(queries, gone);
    if (gone.length > 0) {
      done(`Deleted ${named(gone)}.`, async () => {
        const problems = await restore(queries, gone);
        if (problems.length === 0) done(`Restored ${named(gone)}.`);
        else
          failed(
            "Some documents could not be restored",
            new Error(problems.map(({ message }) => message).join("; ")),
          );
      });
    }
    if (gone.length < doomed.length) {
      setOver(true);
    } else {
      onClose();
      onDeleted?.();
    }
  };
  const cancel = () => {
    cancelled.current = true;
  };
  return { outcomes, total, over, start, cancel };
}

interface OutcomesProps {
  outcomes: Outcome[];
  total: number;
  over: boolean;
  cancel: () => void;
  onClose: () => void;
}

function Outcomes({ outcomes, total, over, cancel, onClose }: OutcomesProps) {
  const refused = outcomes.filter(({ problems }) => problems.length > 0);
  return (
    <Stack>
      <Progress value={(100 * outcomes.length) / total} aria-label="Deletion progress" />
      <Text size="sm" role="status">
        {outcomes.length - refused.length} of {total} deleted
        {refused.length > 0 && `, ${refused.length} refused`}
        {over && outcomes.length < total && ", then canceled"}
      </Text>
      {refused.slice(0, 50).map(({ document, problems }) => (
        <Problems key={keyOf(document)} title={document.name} problems={problems} />
      ))}
      <Group justify="flex-end">
        <Button variant="default" onClick={over ? onClose : cancel}>
          {over ? "Close" : "Cancel the rest"}
        </Button>
      </Group>
    </Stack>
  );
}

function named(documents: readonly AnyDocument[]): string {
  const [first, ...more] = documents;
  if (first === undefined) return "nothing";
  const kind = KINDS[first.kind];
  if (more.length === 0) return `${kind.one} ${first.name}`;
  const alike = more.every((each) => each.kind === first.kind);
  return `${documents.length} ${alike ? kind.title.toLowerCase() : "documents"}`;
}
