import type { ReactNode } from "react";
import { Prose } from "./Prose";
import { problemsBelow, sentence } from "./paths";
import { type FieldProps, useForm } from "./state";
import { unitOf, withUnit } from "./units";

/** What every input shows besides its value. */
export interface Shown {
  label: string | undefined;
  "aria-label": string | undefined;
  description: ReactNode;
  error: string | undefined;
  placeholder: string | undefined;
  withAsterisk: boolean;
  readOnly: boolean;
  inputWrapperOrder: typeof ORDER;
}

// Inputs beside each other stand in line, however long their descriptions are.
export const ORDER: ("label" | "input" | "description" | "error")[] = [
  "label",
  "input",
  "error",
  "description",
];

export function useShown({ name, label, field, path, required, isBare }: FieldProps): Shown {
  const { problems, context } = useForm();
  const { description, default: initial } = field.schema;
  return {
    label: isBare ? undefined : label,
    "aria-label": isBare ? label : undefined,
    description: description && !isBare ? <Prose text={description} /> : undefined,
    error: sentence(problemsBelow(problems, path)),
    placeholder: placeholderOf(name, initial),
    withAsterisk: required && !isBare,
    readOnly: context.readOnly ?? false,
    inputWrapperOrder: ORDER,
  };
}

function placeholderOf(name: string, initial: unknown): string | undefined {
  if (initial === undefined || initial === null || initial === "") return undefined;
  const unit = unitOf(name);
  if (unit && typeof initial === "number") return `default ${withUnit(initial, unit)}`;
  if (Array.isArray(initial)) return initial.length > 0 ? `default ${initial.join(", ")}` : undefined;
  return typeof initial === "object" ? undefined : `default ${String(initial)}`;
}
