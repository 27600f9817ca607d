import { createContext, useContext } from "react";
import type { Schemas } from "#/api/client";
import type { Place } from "#/api/kinds";
import type { Value } from "#/documents/editing/yaml";
import type { JsonSchema } from "#/forms/SchemaForm";
import type { Tested } from "#/testing/cases";
import type { Catalogue } from "./catalogue";
import type { Check } from "./check";
import type { Edit } from "./model";
import type { Group, Part, PartKey, View } from "./parts";

/** Where the next part goes, for the drawer that offers them. */
export type Adding = { role: "source" } | { role: "sink" } | { role: "processor"; index: number };

/** What every part of the builder needs. */
export interface Builder {
  place: Place;
  /** The id of the document that is edited; null for a new one. */
  id: string | null;
  saved: Schemas["PipeInfo"]["status"] | null;
  value: Value;
  view: View;
  check: Check;
  selected: PartKey | null;
  /** The canvas shows an older text, because the present one is no YAML. */
  isStale: boolean;
  catalogue: Catalogue;
  /** The OpenAPI document: where the schemas of forms refer to. */
  root: JsonSchema;
  edit: (edit: (text: string) => Edit, tag?: string) => void;
  select: (key: PartKey | null) => void;
  add: (adding: Adding) => void;
  /** The last test run of the document as it is now. */
  tested: Tested | null;
  setTested: (tested: Tested) => void;
  showTests: () => void;
  remove: (part: Part) => void;
  move: (group: Group, from: number, to: number) => void;
  duplicate: (part: Part) => void;
}

export const BuilderContext = createContext<Builder | null>(null);

export function useBuilder(): Builder {
  const builder = useContext(BuilderContext);
  if (!builder) throw new Error("used outside the builder");
  return builder;
}
