import { CardsField } from "./CardsField";
import { JsonField } from "./JsonField";
import { MapField } from "./MapField";
import { SectionField } from "./SectionField";
import { ChoiceField, NoLimit, NoneBox, NumberField, SwitchField } from "./scalars";
import { isObject } from "./schema";
import type { FieldProps } from "./state";
import { TagsField } from "./TagsField";
import { TextField } from "./TextField";
import { VariantsField } from "./VariantsField";

/** One field, by the shape of its value. */
export function FieldView(props: FieldProps) {
  const { field, value, path } = props;
  const hasNone = field.nullable && field.schema.default !== undefined && field.schema.default !== null;
  return (
    <div data-path={path}>
      {value === null && hasNone ? <NoLimit {...props} /> : <Shaped {...props} />}
      {hasNone && <NoneBox {...props} />}
    </div>
  );
}

function Shaped(props: FieldProps) {
  const { value } = props;
  const { shape } = props.field;
  if (!holds(shape, value))
    return typeof value === "string" ? <TextField {...props} /> : <JsonField {...props} />;
  switch (shape) {
    case "switch":
      return <SwitchField {...props} />;
    case "choice":
      return <ChoiceField {...props} />;
    case "number":
      return <NumberField {...props} />;
    case "text":
    case "constant":
      return <TextField {...props} />;
    case "tags":
      return <TagsField {...props} />;
    case "cards":
      return <CardsField {...props} />;
    case "section":
      return <SectionField {...props} />;
    case "map":
      return <MapField {...props} />;
    case "variants":
      return <VariantsField {...props} />;
    case "json":
      return <JsonField {...props} />;
  }
}

// A document may hold what does not belong there, or a variable in place of a value: that is shown as it is.
function holds(shape: FieldProps["field"]["shape"], value: unknown): boolean {
  if (value === undefined || value === null) return true;
  if (shape === "switch") return typeof value === "boolean";
  if (shape === "tags") return Array.isArray(value) && value.every((each) => typeof each !== "object");
  if (shape === "cards") return Array.isArray(value);
  if (shape === "section") return isObject(value);
  if (shape === "map")
    return isObject(value) && Object.values(value).every((each) => typeof each !== "object");
  return true;
}
