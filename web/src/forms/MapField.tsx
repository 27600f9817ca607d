import { ActionIcon, Autocomplete, Button, Group, Input, TextInput } from "@mantine/core";
import { IconPlus, IconTrash } from "@tabler/icons-react";
import { useRef, useState } from "react";
import { LazyCodeEditor } from "#/editors/LazyCodeEditor";
import classes from "./forms.module.css";
import { useShown } from "./inputs";
import { below, problemsBelow, problemsLeft, sentence } from "./paths";
import { isObject } from "./schema";
import { type FieldProps, useForm } from "./state";
import { textOf } from "./TextField";
import { hasColumnKeys, hasExpressions } from "./widgets";

interface Row {
  id: number;
  key: string;
  value: unknown;
}

/** Pairs of a name and a text, in rows. */
export function MapField(props: FieldProps) {
  const { label: title, description, withAsterisk, readOnly } = useShown(props);
  const { label } = props;
  const { problems, context } = useForm();
  const [rows, setRows] = useRows(props.value);
  const change = (next: Row[]) => {
    setRows(next);
    const made = Object.fromEntries(next.filter((row) => row.key !== "").map((row) => [row.key, row.value]));
    props.onChange(Object.keys(made).length === 0 ? undefined : made);
  };
  const edit = (id: number, part: Partial<Row>) =>
    change(rows.map((row) => (row.id === id ? { ...row, ...part } : row)));
  const own = problemsLeft(
    problems,
    props.path,
    rows.map((row) => below(props.path, row.key)),
  );
  return (
    <Input.Wrapper
      label={title}
      description={description}
      error={sentence(own)}
      withAsterisk={withAsterisk}
      labelElement="div"
    >
      <div className={classes.rows}>
        {rows.map((row, place) => {
          const twice = rows.some((other) => other.id < row.id && other.key === row.key && row.key !== "");
          const path = below(props.path, row.key);
          return (
            <Group key={row.id} gap="xs" wrap="nowrap" align="flex-start" data-path={path}>
              <Autocomplete
                className={classes.key}
                aria-label={`${label}: name ${place + 1}`}
                placeholder="name"
                readOnly={readOnly}
                data={
                  hasColumnKeys(props.field.schema) ? (context.columns?.map((each) => each.name) ?? []) : []
                }
                value={row.key}
                error={twice ? "This name is already used" : undefined}
                onChange={(key) => edit(row.id, { key })}
              />
              <PairValue
                label={`${label}: ${row.key || place + 1}`}
                isCode={hasExpressions(props.field.schema)}
                value={row.value}
                error={sentence(row.key === "" ? [] : problemsBelow(problems, path))}
                readOnly={readOnly}
                onChange={(value) => edit(row.id, { value })}
              />
              {!readOnly && (
                <ActionIcon
                  variant="subtle"
                  color="gray"
                  mt={4}
                  aria-label={`Remove ${row.key || "this row"} from ${label}`}
                  onClick={() => change(rows.filter((other) => other.id !== row.id))}
                >
                  <IconTrash size={16} />
                </ActionIcon>
              )}
            </Group>
          );
        })}
        {!readOnly && (
          <Button
            variant="default"
            size="compact-sm"
            w="fit-content"
            leftSection={<IconPlus size={14} />}
            aria-label={`Add to ${label}`}
            onClick={() => setRows([...rows, { id: nextId(rows), key: "", value: "" }])}
          >
            Add
          </Button>
        )}
      </div>
    </Input.Wrapper>
  );
}

interface PairProps {
  label: string;
  isCode: boolean;
  value: unknown;
  error: string | undefined;
  readOnly: boolean;
  onChange: (value: string) => void;
}

function PairValue({ label, isCode, value, error, readOnly, onChange }: PairProps) {
  const { context } = useForm();
  if (!isCode) {
    return (
      <TextInput
        className={classes.grow}
        aria-label={label}
        placeholder="value"
        readOnly={readOnly}
        value={textOf(value)}
        error={error}
        onChange={({ currentTarget }) => onChange(currentTarget.value)}
      />
    );
  }
  return (
    <Input.Wrapper className={classes.grow} error={error}>
      <LazyCodeEditor
        language="sql"
        label={label}
        value={textOf(value)}
        readOnly={readOnly}
        columns={context.columns}
        minHeight={36}
        maxHeight={200}
        onChange={onChange}
      />
    </Input.Wrapper>
  );
}

// Rows keep their identity while a name is typed, and are made again when the value was changed from outside.
function useRows(value: unknown): [Row[], (rows: Row[]) => void] {
  const given = isObject(value) ? value : {};
  const [rows, setRows] = useState<Row[]>(() => rowsOf(given));
  const text = JSON.stringify(given);
  const last = useRef(text);
  const own = JSON.stringify(
    Object.fromEntries(rows.filter((row) => row.key !== "").map((row) => [row.key, row.value])),
  );
  if (text !== last.current) {
    last.current = text;
    if (text !== own) {
      const next = rowsOf(given);
      setRows(next);
      return [next, setRows];
    }
  }
  return [rows, setRows];
}

const rowsOf = (value: Record<string, unknown>): Row[] =>
  Object.entries(value).map(([key, each], id) => ({ id, key, value: each }));

const nextId = (rows: Row[]) => Math.max(-1, ...rows.map((row) => row.id)) + 1;
