import { type AnyDocument, keyOf } from "#/api/kinds";
import { type Described, withDefaults } from "#/api/openapi";
import { currentPulse, type FlowPulse, type StreamPulse } from "#/api/overview";

/** A row of a grid: a document, with its spec as it takes effect. */
export interface Row {
  document: AnyDocument;
  // biome-ignore lint/suspicious/noExplicitAny: what a spec holds is told by the schema of its kind
  spec: any;
  /** What it does in a few words, such as `generate → file, stream`. */
  work: string;
  labels: string;
}

/** The rows of documents; a document that has not changed keeps its row, so that the grid leaves it alone. */
export function rowsOf(
  documents: readonly AnyDocument[],
  schemas: Record<string, Described> | undefined,
  known: WeakMap<AnyDocument, Row>,
): Row[] {
  return documents.map((document) => {
    const before = known.get(document);
    if (before !== undefined) return before;
    const schema = schemas?.[`${document.kind}Spec`];
    const spec = schema && schemas ? withDefaults(document.spec, schema, schemas) : document.spec;
    const row = { document, spec: spec ?? {}, work: workOf(document), labels: labelsOf(document) };
    known.set(document, row);
    return row;
  });
}

/** The live numbers of a row, if it has any. */
export const flowOf = (row: Row): FlowPulse | undefined => currentPulse().flows.get(keyOf(row.document));
export const streamOf = (row: Row): StreamPulse | undefined =>
  currentPulse().streams.get(keyOf(row.document));

/** How a row is right now: the pulse knows it first, the document when there was no pulse yet. */
export function stateOf(row: Row): { status: string | null; phase: string | null } {
  const { document } = row;
  const flow = flowOf(row);
  // An event of the registry may be newer than the pulse: a status that differs there is the right one.
  if (flow !== undefined && flow.status === document.status)
    return { status: flow.status, phase: flow.phase };
  return { status: document.status ?? null, phase: document.phase ?? null };
}

/** What the filter of the status looks into. A flow that is stalled is not found among those that are active. */
export function statusWords(row: Row): string {
  const { status, phase } = stateOf(row);
  if (status === "active" && phase === "stalled") return phase;
  return status ? `${status} ${phase ?? ""}` : "definition";
}

function workOf({ kind, spec }: AnyDocument): string {
  if (kind === "Pipeline") {
    const sinks: string[] = (spec?.sinks ?? []).map(endName);
    return `${endName(spec?.source)} → ${sinks.length > 0 ? sinks.join(", ") : "nothing"}`;
  }
  if (kind === "Task") return (spec?.processors ?? []).map((step: End) => step.type ?? "?").join(", ");
  return spec?.type ?? "";
}

interface End {
  type?: string;
  ref?: string;
  stream?: string;
}

const endName = (end: End | undefined) =>
  end?.ref ?? (end?.type === "stream" ? end.stream : end?.type) ?? "?";

const labelsOf = ({ metadata }: AnyDocument) =>
  Object.entries(metadata.labels ?? {})
    .map(([key, value]) => `${key}=${value}`)
    .join(", ");
