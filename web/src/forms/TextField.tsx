import { Autocomplete, Button, Input, Textarea, TextInput } from "@mantine/core";
import { IconPlus } from "@tabler/icons-react";
import { useState } from "react";
import { useDocuments } from "#/api/documents";
import type { Kind } from "#/api/kinds";
import { useAllowed } from "#/api/session";
import { derivedId } from "#/builder/parts";
import { LazyCodeEditor } from "#/editors/LazyCodeEditor";
import type { Language } from "#/editors/language";
import { problemsIn } from "#/editors/places";
import { ORDER, useShown } from "./inputs";
import { NewStream } from "./NewStream";
import { problemsBelow } from "./paths";
import { DurationField } from "./scalars";
import { type FieldProps, useForm } from "./state";
import { isColumns, isDuration, isPosition, languageOf, namesColumns, referenceOf } from "./widgets";

const POSITIONS = ["earliest", "latest", "offset:0", "time:2026-01-01T00:00:00Z"];

const MONOSPACE = { input: { fontFamily: "var(--mantine-font-family-monospace)" } };

/** A text: plain, chosen from what is known, or code. */
export function TextField(props: FieldProps) {
  const { context } = useForm();
  const { name, field, parent } = props;
  const language = languageOf(name, field.schema, parent);
  if (language) return <CodeField {...props} language={language} />;
  const kind = referenceOf(field.schema);
  if (kind) return <ReferenceField {...props} kind={kind} />;
  if (isDuration(field.schema)) return <DurationField {...props} />;
  if (isPosition(field.schema)) return <Suggested {...props} suggestions={POSITIONS} />;
  if (namesColumns(name) && context.columns?.length) {
    const columns = context.columns.map((column) => column.name);
    return <Suggested {...props} suggestions={name === "time" ? ["system", ...columns] : columns} />;
  }
  return <PlainText {...props} />;
}

function PlainText(props: FieldProps) {
  const shown = useShown(props);
  const value = textOf(props.value);
  const change = (text: string) => props.onChange(text === "" ? undefined : text);
  const isProse = props.name === "description";
  if (isProse || isColumns(props.field.schema) || value.includes("\n")) {
    return (
      <Textarea
        {...shown}
        autosize
        minRows={1}
        maxRows={16}
        spellCheck={isProse}
        placeholder={
          shown.placeholder ?? (isColumns(props.field.schema) ? "id BIGINT, name STRING" : undefined)
        }
        styles={isProse ? undefined : MONOSPACE}
        value={value}
        onChange={({ currentTarget }) => change(currentTarget.value)}
      />
    );
  }
  return <TextInput {...shown} value={value} onChange={({ currentTarget }) => change(currentTarget.value)} />;
}

function Suggested({ suggestions, ...props }: FieldProps & { suggestions: string[] }) {
  const shown = useShown(props);
  return (
    <Autocomplete
      {...shown}
      data={[...new Set(suggestions)]}
      limit={50}
      value={textOf(props.value)}
      onChange={(text) => props.onChange(text === "" ? undefined : text)}
    />
  );
}

function ReferenceField({ kind, ...props }: FieldProps & { kind: Kind }) {
  const { data } = useDocuments(kind);
  const { context } = useForm();
  const mayCreate = useAllowed("editor") && kind.name === "Stream" && !context.readOnly;
  const [isCreating, setCreating] = useState(false);
  const typed = textOf(props.value);
  const isUnknown = typed !== "" && data !== undefined && !data.some((each) => each.id === derivedId(typed));
  return (
    <>
      <Suggested {...props} suggestions={data?.map((each) => each.id) ?? []} />
      {mayCreate && (
        <Button
          variant="subtle"
          size="compact-xs"
          mt={4}
          leftSection={<IconPlus size={12} />}
          onClick={() => setCreating(true)}
        >
          {isUnknown ? `Create stream ${typed}` : "New stream"}
        </Button>
      )}
      {isCreating && (
        <NewStream
          name={isUnknown ? typed : ""}
          columns={context.columns ?? []}
          onCreated={(id) => {
            props.onChange(id);
            setCreating(false);
          }}
          onClose={() => setCreating(false)}
        />
      )}
    </>
  );
}

function CodeField({ language, ...props }: FieldProps & { language: Language }) {
  const { label, description, error, withAsterisk, readOnly } = useShown(props);
  const { problems, context } = useForm();
  return (
    <Input.Wrapper
      inputWrapperOrder={ORDER}
      label={label}
      description={description}
      error={error}
      withAsterisk={withAsterisk}
      labelElement="div"
    >
      <LazyCodeEditor
        language={language}
        label={props.label}
        value={textOf(props.value)}
        readOnly={readOnly}
        columns={context.columns}
        problems={problemsIn(problemsBelow(problems, props.path))}
        minHeight={props.name === "query" || props.name === "inline" ? 120 : 36}
        maxHeight={480}
        onChange={(text) => props.onChange(text === "" ? undefined : text)}
      />
    </Input.Wrapper>
  );
}

export const textOf = (value: unknown): string =>
  value === undefined || value === null ? "" : typeof value === "string" ? value : JSON.stringify(value);
