import { TagsInput } from "@mantine/core";
import { useDocuments } from "#/api/documents";
import type { Kind } from "#/api/kinds";
import { useShown } from "./inputs";
import { type FieldProps, useForm } from "./state";
import { namesColumns, namesSinks, referenceOf } from "./widgets";

/** A list of words or numbers. */
export function TagsField(props: FieldProps) {
  const { context } = useForm();
  const kind = referenceOf(props.field.schema);
  if (kind) return <ReferenceTags {...props} kind={kind} />;
  if (namesSinks(props.field.schema)) return <Tags {...props} suggestions={context.sinks ?? []} />;
  const columns = namesColumns(props.name) ? context.columns?.map((column) => column.name) : undefined;
  const choices = props.field.schema.items?.enum?.map(String);
  return <Tags {...props} suggestions={choices ?? columns ?? []} />;
}

function ReferenceTags({ kind, ...props }: FieldProps & { kind: Kind }) {
  const { data } = useDocuments(kind);
  return <Tags {...props} suggestions={data?.map((each) => each.id) ?? []} />;
}

function Tags({ suggestions, ...props }: FieldProps & { suggestions: string[] }) {
  const shown = useShown(props);
  const items = props.field.schema.items?.type;
  const isNumber = items === "integer" || items === "number";
  const value = Array.isArray(props.value) ? props.value.map(String) : [];
  return (
    <TagsInput
      {...shown}
      placeholder={value.length === 0 ? (shown.placeholder ?? "Type a value and press Enter") : undefined}
      data={suggestions}
      limit={50}
      value={value}
      acceptValueOnBlur
      clearable={!shown.readOnly}
      clearButtonProps={{ "aria-label": `Clear ${props.label}` }}
      onChange={(next) =>
        props.onChange(next.length === 0 ? undefined : isNumber ? next.map(numberOrText) : next)
      }
    />
  );
}

const numberOrText = (text: string) => (Number.isNaN(Number(text)) ? text : Number(text));
