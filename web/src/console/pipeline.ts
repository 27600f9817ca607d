import { yamlOf } from "#/documents/content";
import { referencesIn, tablesIn } from "./references";

/** Why a query can't become a step of a pipeline; null if it can. */
export function whyNoPipeline(sql: string): string | null {
  const tables = tablesIn(sql);
  if (tables.length === 1) return null;
  if (tables.length === 0) return "The query names no stream.";
  return `An sql step reads one stream, and the query names ${tables.length}.`;
}

/** A pipeline that reads the stream of a query and has the query as its sql step, as YAML. */
export function pipelineOf(sql: string): string {
  const [stream = ""] = tablesIn(sql);
  return yamlOf({
    apiVersion: "penstock/v1",
    kind: "Pipeline",
    metadata: { name: `${stream} query` },
    spec: {
      source: { type: "stream", stream, position: "earliest" },
      processors: [{ id: "query", type: "sql", query: stepOf(sql) }],
      sinks: [],
    },
  });
}

/** The query over `input`, which is what an sql step reads. */
function stepOf(sql: string): string {
  let text = sql.trim().replace(/;\s*$/, "");
  for (const { table, from, to, alias } of referencesIn(text).toReversed()) {
    const isQualified = new RegExp(`(^|[^\\w.])\`?${escaped(table)}\`?\\.`, "i").test(text);
    const name = isQualified && !alias ? `input AS \`${table}\`` : "input";
    text = text.slice(0, from) + name + text.slice(to);
  }
  return text;
}

const escaped = (text: string) => text.replace(/[.*+?^${}()|[\]\\]/g, "\\$&");
