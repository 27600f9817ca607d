import { Input } from "@mantine/core";
import { useState } from "react";
import { parse } from "#/api/json";
import { LazyCodeEditor } from "#/editors/LazyCodeEditor";
import { useShown } from "./inputs";
import type { FieldProps } from "./state";

const pretty = (value: unknown) => (value === undefined ? "" : JSON.stringify(value, null, 2));

/** Anything, as JSON: for values that no other field is made for. */
export function JsonField(props: FieldProps) {
  const { label, description, error, withAsterisk, readOnly } = useShown(props);
  const [draft, setDraft] = useState<string>();
  const own = draft === undefined ? undefined : read(draft);
  const isCurrent = own !== undefined && (!own.ok || pretty(own.value) === pretty(props.value));
  return (
    <Input.Wrapper
      label={label}
      description={description}
      error={error ?? (own?.ok === false ? `${own.why} The last valid value is used.` : undefined)}
      withAsterisk={withAsterisk}
      labelElement="div"
    >
      <LazyCodeEditor
        language="json"
        label={props.label}
        value={isCurrent ? draft! : pretty(props.value)}
        readOnly={readOnly}
        minHeight={60}
        maxHeight={360}
        onChange={(text) => {
          setDraft(text);
          const next = read(text);
          if (next.ok) props.onChange(next.value);
        }}
      />
    </Input.Wrapper>
  );
}

type Read = { ok: true; value: unknown } | { ok: false; why: string };

function read(text: string): Read {
  if (text.trim() === "") return { ok: true, value: undefined };
  try {
    return { ok: true, value: parse(text) };
  } catch (error) {
    return { ok: false, why: `Not valid JSON: ${(error as Error).message}.` };
  }
}
