import { Fieldset, Switch, Text } from "@mantine/core";
import { Fields } from "./Fields";
import classes from "./forms.module.css";
import { useShown } from "./inputs";
import { Prose } from "./Prose";
import { isObject } from "./schema";
import { type FieldProps, useForm } from "./state";

/** An object with fields of its own. One that may be absent has a switch for that. */
export function SectionField(props: FieldProps) {
  const { context } = useForm();
  const { label, isBare } = props;
  const { description } = useShown(props);
  const isOptional = props.field.nullable && !props.required;
  const isThere = isObject(props.value);
  const fields = (
    <Fields
      schema={props.field.schema}
      value={isThere ? (props.value as Record<string, unknown>) : {}}
      path={props.path}
      onChange={(next) =>
        props.onChange(Object.keys(next).length === 0 && !isOptional && !props.required ? undefined : next)
      }
    />
  );
  if (isBare) return fields;
  if (!isOptional) {
    return (
      <Fieldset legend={label} radius="md" classNames={{ legend: classes.legend }}>
        <About text={props.field.schema.description} />
        {fields}
      </Fieldset>
    );
  }
  return (
    <>
      <Switch
        label={label}
        description={description}
        disabled={context.readOnly}
        checked={isThere}
        onChange={({ currentTarget }) => props.onChange(currentTarget.checked ? {} : undefined)}
      />
      {isThere && (
        <Fieldset mt="xs" radius="md" aria-label={label}>
          {fields}
        </Fieldset>
      )}
    </>
  );
}

function About({ text }: { text: string | undefined }) {
  if (!text) return null;
  return (
    <Text size="xs" c="dimmed" mb="xs">
      <Prose text={text.split("\n\n")[0]!} />
    </Text>
  );
}
