import { Input, SegmentedControl, Select } from "@mantine/core";
import { useState } from "react";
import { FieldView } from "./FieldView";
import { useShown } from "./inputs";
import { fieldOf, isObject, seed, variantOf, variantTitle } from "./schema";
import { type FieldProps, useForm } from "./state";

const FEW = 4;

/** A value that may have one of several shapes: the choice of the shape, and its field. */
export function VariantsField(props: FieldProps) {
  const { root } = useForm();
  const { label: title, description, withAsterisk, readOnly } = useShown(props);
  const { label } = props;
  const { variants, schema } = props.field;
  const isSet = props.value !== undefined && props.value !== null;
  const [chosen, setChosen] = useState(() => variantOf(variants, isSet ? props.value : schema.default, root));
  // The document may have been changed elsewhere: what it holds decides, where it holds something.
  const current = isSet ? variantOf(variants, props.value, root) : chosen;
  const titles = variants.map((each) => variantTitle(each, root));
  const choose = (place: number) => {
    setChosen(place);
    props.onChange(begin(props.value, seed(variants[place]!, root)));
  };
  const inner = fieldOf(variants[current]!, root);
  const isConstant = inner.shape === "constant";
  return (
    <Input.Wrapper label={title} description={description} withAsterisk={withAsterisk} labelElement="div">
      {variants.length <= FEW ? (
        <SegmentedControl
          size="xs"
          mb="xs"
          aria-label={`${label}: kind`}
          disabled={readOnly}
          data={titles.map((title, place) => ({ value: String(place), label: title }))}
          value={String(current)}
          onChange={(next) => choose(Number(next))}
        />
      ) : (
        <Select
          mb="xs"
          aria-label={`${label}: kind`}
          readOnly={readOnly}
          allowDeselect={false}
          searchable
          data={titles.map((title, place) => ({ value: String(place), label: title }))}
          value={String(current)}
          onChange={(next) => next !== null && choose(Number(next))}
        />
      )}
      {!isConstant && (
        <FieldView
          {...props}
          key={current}
          label={`${label}: ${titles[current]}`}
          isBare
          field={{
            ...inner,
            schema: {
              ...inner.schema,
              description: schema.description,
              default: defaultFor(schema.default, inner),
            },
          }}
        />
      )}
    </Input.Wrapper>
  );
}

// What both shapes have is kept, apart from what tells them apart.
function begin(before: unknown, next: unknown): unknown {
  if (!isObject(before) || !isObject(next)) return next;
  return Object.keys(next).length > 0 ? next : undefined;
}

function defaultFor(initial: unknown, inner: ReturnType<typeof fieldOf>): unknown {
  const { shape, schema } = inner;
  if (shape === "choice") return schema.enum!.includes(initial) ? initial : undefined;
  return shape === "text" && typeof initial === "string" ? initial : undefined;
}
