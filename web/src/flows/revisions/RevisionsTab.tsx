import { Badge, Button, Group, Radio, Stack, Table, Text } from "@mantine/core";
import { IconArrowBackUp } from "@tabler/icons-react";
import { useState } from "react";
import { Allowed } from "#/access/Allowed";
import type { AnyDocument, Kind } from "#/api/kinds";
import { ago, moment } from "#/components/format";
import { Loading } from "#/components/Page";
import { Failure } from "#/components/Problems";
import { WideTable } from "#/components/WideTable";
import { type Revision, useRevisions } from "./api";
import { Comparison } from "./Comparison";
import { RollbackDialog } from "./RollbackDialog";

/** Every saved state of a document: compare any two, go back to one. */
export default function RevisionsTab({ kind, document }: { kind: Kind; document: AnyDocument }) {
  const revisions = useRevisions(kind, document);
  const [pair, setPair] = useState<{ before: number; after: number } | null>(null);
  const [back, setBack] = useState<number | null>(null);
  if (revisions.error) return <Failure error={revisions.error} title="Could not load the revisions" />;
  if (!revisions.data) return <Loading what="Loading revisions" />;
  const [newest, second] = revisions.data;
  const { before, after } = pair ?? {
    before: second?.revision ?? newest!.revision,
    after: newest!.revision,
  };
  return (
    <Stack>
      <WideTable least={560} verticalSpacing={6} aria-label="Revisions">
        <Table.Thead>
          <Table.Tr>
            <Table.Th w={70}>Before</Table.Th>
            <Table.Th w={60}>After</Table.Th>
            <Table.Th w={110}>Revision</Table.Th>
            <Table.Th>Saved by</Table.Th>
            <Table.Th>When</Table.Th>
            <Table.Th />
          </Table.Tr>
        </Table.Thead>
        <Table.Tbody>
          {revisions.data.map((each) => (
            <Row
              key={each.revision}
              revision={each}
              current={each.revision === document.revision}
              isBefore={each.revision === before}
              isAfter={each.revision === after}
              onBefore={() => setPair({ before: each.revision, after })}
              onAfter={() => setPair({ before, after: each.revision })}
              onRollback={() => setBack(each.revision)}
            />
          ))}
        </Table.Tbody>
      </WideTable>
      {revisions.data.length === 1 ? (
        <Text size="sm" c="dimmed">
          Only one revision so far. Every save adds a revision, and all revisions are kept.
        </Text>
      ) : (
        <Comparison kind={kind} id={document.id} before={before} after={after} />
      )}
      {back !== null && (
        <RollbackDialog kind={kind} document={document} revision={back} onClose={() => setBack(null)} />
      )}
    </Stack>
  );
}

interface RowProps {
  revision: Revision;
  current: boolean;
  isBefore: boolean;
  isAfter: boolean;
  onBefore: () => void;
  onAfter: () => void;
  onRollback: () => void;
}

function Row({ revision, current, isBefore, isAfter, onBefore, onAfter, onRollback }: RowProps) {
  const number = revision.revision;
  return (
    <Table.Tr>
      <Table.Td data-label="Before">
        <Radio
          name="before"
          aria-label={`Compare from revision ${number}`}
          checked={isBefore}
          onChange={onBefore}
        />
      </Table.Td>
      <Table.Td data-label="After">
        <Radio
          name="after"
          aria-label={`Compare to revision ${number}`}
          checked={isAfter}
          onChange={onAfter}
        />
      </Table.Td>
      <Table.Td data-label="Revision">
        <Group gap="xs" wrap="nowrap">
          {number}
          {current && (
            <Badge variant="light" tt="none">
              current
            </Badge>
          )}
        </Group>
      </Table.Td>
      <Table.Td data-label="Saved by">{revision.origin}</Table.Td>
      <Table.Td title={moment(revision.created_at)}>{ago(revision.created_at)}</Table.Td>
      <Table.Td ta="right">
        {!current && (
          <Allowed needs="editor">
            <Button
              size="compact-sm"
              variant="default"
              leftSection={<IconArrowBackUp size={14} aria-hidden />}
              onClick={onRollback}
              aria-label={`Roll back to revision ${number}`}
            >
              Roll back
            </Button>
          </Allowed>
        )}
      </Table.Td>
    </Table.Tr>
  );
}
