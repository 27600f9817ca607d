import { Table, Text, VisuallyHidden } from "@mantine/core";
import classes from "./FieldTable.module.css";
import type { FieldChange, Mark } from "./trace";

const SIGNS: Record<Mark, string> = { added: "+", changed: "~", removed: "−", same: "" };

interface Props {
  fields: readonly FieldChange[];
  /** What the two columns are called; one that is null is left out. */
  before: string | null;
  after: string | null;
  label: string;
}

/** The fields of an event, beside each other before and after, with a sign where they differ. */
export function FieldTable({ fields, before, after, label }: Props) {
  return (
    <Table
      className={classes.table}
      aria-label={label}
      withRowBorders={false}
      verticalSpacing={3}
      layout="fixed"
    >
      <Table.Thead>
        <Table.Tr>
          <Table.Th className={classes.sign}>
            <VisuallyHidden>Change</VisuallyHidden>
          </Table.Th>
          <Table.Th className={classes.name}>Field</Table.Th>
          {before !== null && <Table.Th>{before}</Table.Th>}
          {after !== null && <Table.Th>{after}</Table.Th>}
        </Table.Tr>
      </Table.Thead>
      <Table.Tbody>
        {fields.map((field) => (
          <Table.Tr key={field.name} className={classes[field.mark]}>
            <Table.Td className={classes.sign}>
              <span aria-hidden>{SIGNS[field.mark]}</span>
              {field.mark !== "same" && <VisuallyHidden>{field.mark}</VisuallyHidden>}
            </Table.Td>
            <Table.Td className={classes.name}>{field.name}</Table.Td>
            {before !== null && (
              <Table.Td>
                <Value value={field.before} there={field.mark !== "added"} />
              </Table.Td>
            )}
            {after !== null && (
              <Table.Td>
                <Value value={field.after} there={field.mark !== "removed"} />
              </Table.Td>
            )}
          </Table.Tr>
        ))}
      </Table.Tbody>
    </Table>
  );
}

const LONGEST = 2000;

function Value({ value, there }: { value: unknown; there: boolean }) {
  if (!there || value === undefined) {
    return (
      <Text span size="xs" c="dimmed">
        –
      </Text>
    );
  }
  const text = typeof value === "string" ? JSON.stringify(value) : pretty(value);
  return (
    <span className={classes.value}>
      {text.length > LONGEST ? `${text.slice(0, LONGEST)} … (${text.length} characters)` : text}
    </span>
  );
}

const pretty = (value: unknown) => {
  const short = JSON.stringify(value);
  return short.length > 60 ? JSON.stringify(value, null, 1) : short;
};
