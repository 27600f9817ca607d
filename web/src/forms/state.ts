import { createContext, useContext } from "react";
import type { Problem } from "#/api/client";
import type { Whole } from "./conditions";
import type { Field, JsonSchema } from "./schema";

/** What a form may know about where its fields stand. */
export interface FormContext {
  /** The columns of the events that come in. */
  columns?: { name: string; type: string }[];
  readOnly?: boolean;
  /** Ids of the sinks of the same document. */
  sinks?: string[];
}

interface FormState {
  root: JsonSchema;
  /** The spec that the form is about, if it is about a whole one. */
  whole?: Whole;
  problems: readonly Problem[];
  context: FormContext;
}

export const FormStateContext = createContext<FormState>({ root: {}, problems: [], context: {} });

export const useForm = (): FormState => useContext(FormStateContext);

/** A field of a form: what it is called, where it stands, what it holds. */
export interface FieldProps {
  name: string;
  label: string;
  field: Field;
  value: unknown;
  path: string;
  required: boolean;
  /** Whether its name and description stand above it already. */
  isBare?: boolean;
  /** The `type` of the object that it is a field of. */
  parent?: string;
  /** Undefined takes the field out of the document. */
  onChange: (next: unknown) => void;
}
