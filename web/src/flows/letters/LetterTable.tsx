import { Anchor, Badge, Checkbox, Group, Table, Text } from "@mantine/core";
import { moment } from "#/components/format";
import { WideTable } from "#/components/WideTable";
import type { Letter } from "../api";
import { LetterStateBadge } from "./LetterStateBadge";

interface Props {
  letters: readonly Letter[];
  selected: ReadonlySet<number>;
  /** Without it letters can be opened only. */
  onSelect?: (selected: ReadonlySet<number>) => void;
  onOpen: (offset: number) => void;
}

/** Letters in a row, to choose from and to open. */
export function LetterTable({ letters, selected, onSelect, onOpen }: Props) {
  const all = letters.length > 0 && letters.every((each) => selected.has(each.offset));
  const toggle = (offset: number) => {
    const next = new Set(selected);
    if (!next.delete(offset)) next.add(offset);
    onSelect?.(next);
  };
  return (
    <WideTable least={820} highlightOnHover verticalSpacing={6} aria-label="Dead letters">
      <Table.Thead>
        <Table.Tr>
          {onSelect && (
            <Table.Th w={36} data-label="Select all">
              <Checkbox
                aria-label="Select all on this page"
                checked={all}
                indeterminate={!all && selected.size > 0}
                onChange={() => onSelect(new Set(all ? [] : letters.map((each) => each.offset)))}
              />
            </Table.Th>
          )}
          <Table.Th w={70}>Letter</Table.Th>
          <Table.Th w={160}>Time</Table.Th>
          <Table.Th w={120}>Step</Table.Th>
          <Table.Th miw={240}>Reason</Table.Th>
          <Table.Th w={140}>State</Table.Th>
          <Table.Th>Event</Table.Th>
        </Table.Tr>
      </Table.Thead>
      <Table.Tbody>
        {letters.map((letter) => (
          <Row
            key={letter.offset}
            letter={letter}
            chosen={selected.has(letter.offset)}
            onToggle={onSelect && (() => toggle(letter.offset))}
            onOpen={() => onOpen(letter.offset)}
          />
        ))}
      </Table.Tbody>
    </WideTable>
  );
}

interface RowProps {
  letter: Letter;
  chosen: boolean;
  onToggle?: () => void;
  onOpen: () => void;
}

function Row({ letter, chosen, onToggle, onOpen }: RowProps) {
  return (
    <Table.Tr bg={chosen ? "var(--mantine-primary-color-light)" : undefined}>
      {onToggle && (
        <Table.Td>
          <Checkbox aria-label={`Select letter ${letter.offset}`} checked={chosen} onChange={onToggle} />
        </Table.Td>
      )}
      <Table.Td data-label="Letter">
        <Anchor component="button" type="button" size="sm" onClick={onOpen}>
          {letter.offset}
        </Anchor>
      </Table.Td>
      <Table.Td>
        <Text size="sm" style={{ whiteSpace: "nowrap" }}>
          {moment(letter.time)}
        </Text>
      </Table.Td>
      <Table.Td data-label="Step">
        <Text size="sm">{letter.step}</Text>
      </Table.Td>
      <Table.Td data-line>
        <Text size="sm" fw={500}>
          {letter.code}
        </Text>
        <Text size="xs" c="dimmed" lineClamp={2} title={letter.reason ?? undefined}>
          {letter.reason}
        </Text>
        {letter.obstacle && letter.state === "new" && (
          <Text size="xs" c="var(--mantine-color-orange-text)" lineClamp={2}>
            Can't be replayed: {letter.obstacle.message}
          </Text>
        )}
      </Table.Td>
      <Table.Td>
        <Group gap={4}>
          <LetterStateBadge letter={letter} />
          {letter.edited && (
            <Badge variant="outline" color="gray" tt="none">
              edited
            </Badge>
          )}
          {letter.attempt > 1 && (
            <Text size="xs" c="dimmed">
              try {letter.attempt}
            </Text>
          )}
        </Group>
      </Table.Td>
      <Table.Td maw={300}>
        <Text size="xs" ff="monospace" truncate>
          {typeof letter.event === "string" ? letter.event : JSON.stringify(letter.event)}
        </Text>
      </Table.Td>
    </Table.Tr>
  );
}
