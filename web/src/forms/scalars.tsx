import { Checkbox, Select, Switch, Text, TextInput } from "@mantine/core";
import { type ReactNode, useState } from "react";
import { useShown } from "./inputs";
import { type FieldProps, useForm } from "./state";
import { durationText, EXAMPLES, fromUnit, type Unit, understood, unitOf, withUnit } from "./units";

/** Yes or no. What is the default is not written down. */
export function SwitchField(props: FieldProps) {
  const { label, description, error, readOnly, "aria-label": name } = useShown(props);
  const initial = props.field.schema.default === true;
  return (
    <Switch
      label={label}
      aria-label={name}
      description={description}
      error={error}
      disabled={readOnly}
      checked={typeof props.value === "boolean" ? props.value : initial}
      onChange={({ currentTarget }) =>
        props.onChange(currentTarget.checked === initial ? undefined : currentTarget.checked)
      }
    />
  );
}

/** One of a few words. */
export function ChoiceField(props: FieldProps) {
  const shown = useShown(props);
  const choices = props.field.schema.enum!.map(String);
  const value = props.value === undefined || props.value === null ? null : String(props.value);
  // What is written but no choice is shown as it is: the server tells what is wrong with it.
  const data = value === null || choices.includes(value) ? choices : [...choices, value];
  return (
    <Select
      {...shown}
      data={data}
      value={value}
      allowDeselect={false}
      clearable={!props.required && !shown.readOnly}
      clearButtonProps={{ "aria-label": `Clear ${props.label}` }}
      onChange={(next) => {
        const place = next === null ? -1 : choices.indexOf(next);
        props.onChange(next === null ? undefined : (props.field.schema.enum![place] ?? next));
      }}
    />
  );
}

/** A number, with its unit where the name of the field tells one. What is no number is kept as text. */
export function NumberField(props: FieldProps) {
  const shown = useShown(props);
  const unit = unitOf(props.name);
  const [draft, setDraft] = useState<string>();
  const text = draft ?? written(props.value, unit);
  return (
    <TextInput
      {...shown}
      description={
        unit ? <Understood text={text} unit={unit} about={shown.description} /> : shown.description
      }
      placeholder={shown.placeholder ?? (unit && EXAMPLES[unit])}
      error={shown.error ?? (unit && unreadable(text, unit))}
      inputMode={unit ? "text" : "decimal"}
      value={text}
      onChange={({ currentTarget }) => {
        setDraft(currentTarget.value);
        props.onChange(read(currentTarget.value, unit));
      }}
      onBlur={() => setDraft(undefined)}
    />
  );
}

/** A duration that the document has as text: `90s`. What is typed in another way is written so. */
export function DurationField(props: FieldProps) {
  const shown = useShown(props);
  const [draft, setDraft] = useState<string>();
  const text = draft ?? written(props.value, undefined);
  return (
    <TextInput
      {...shown}
      description={<Understood text={text} unit="ms" about={shown.description} />}
      placeholder={shown.placeholder ?? EXAMPLES.ms}
      error={shown.error ?? unreadable(text, "ms")}
      value={text}
      onChange={({ currentTarget: { value } }) => {
        setDraft(value);
        const ms = fromUnit(value, "ms");
        props.onChange(ms === undefined ? value.trim() || undefined : durationText(ms));
      }}
      onBlur={() => setDraft(undefined)}
    />
  );
}

function Understood({ text, unit, about }: { text: string; unit: Unit; about: ReactNode }) {
  const value = fromUnit(text, unit);
  if (value === undefined) return about;
  return (
    <>
      <Text span size="xs" fw={600} c="var(--mantine-color-text)">
        = {understood(value, unit)}
      </Text>
      {about && <br />}
      {about}
    </>
  );
}

function written(value: unknown, unit: Unit | undefined): string {
  if (value === undefined || value === null) return "";
  return unit && typeof value === "number" ? withUnit(value, unit) : String(value);
}

function read(text: string, unit: Unit | undefined): number | string | undefined {
  const given = text.trim();
  if (given === "") return undefined;
  if (unit) return fromUnit(given, unit) ?? given;
  return Number.isNaN(Number(given)) ? given : Number(given);
}

// A variable such as ${SIZE} may stand anywhere.
const unreadable = (text: string, unit: Unit) =>
  text === "" || text.includes("${") || fromUnit(text, unit) !== undefined
    ? undefined
    : `Enter a value ${EXAMPLES[unit]}`;

/** In place of a number that is a limit: that there is none. */
export function NoLimit(props: FieldProps) {
  return <TextInput {...useShown(props)} placeholder="no limit" value="" readOnly />;
}

/** Beside a field whose default is a limit: that there shall be none. */
export function NoneBox({ label, value, onChange }: Pick<FieldProps, "label" | "value" | "onChange">) {
  const { context } = useForm();
  return (
    <Checkbox
      mt={6}
      size="xs"
      label="No limit"
      aria-label={`${label}: no limit`}
      disabled={context.readOnly}
      checked={value === null}
      onChange={({ currentTarget }) => onChange(currentTarget.checked ? null : undefined)}
    />
  );
}
