import { stringify } from "yaml";
import type { AnyDocument } from "#/api/kinds";

/** A document as one would write it: no state, and nothing that is empty. */
export function contentOf(document: AnyDocument): Record<string, unknown> {
  const { name, description, labels } = document.metadata;
  return {
    apiVersion: "penstock/v1",
    kind: document.kind,
    metadata: {
      name,
      ...(description ? { description } : {}),
      ...(Object.keys(labels ?? {}).length > 0 ? { labels } : {}),
    },
    spec: document.spec ?? {},
    ...(document.status ? { status: DESIRED[document.status] } : {}),
  };
}

/** What one would ask for to get a status back; what has ended or failed is not started by that. */
const DESIRED = {
  active: "active",
  paused: "paused",
  failed: "paused",
  completed: "stopped",
  stopped: "stopped",
} as const;

export const yamlOf = (value: unknown): string => stringify(value, { lineWidth: 110 });

/** Some documents as a bundle, which can be uploaded again. */
export function bundleOf(documents: readonly AnyDocument[]): Record<string, unknown> {
  return { apiVersion: "penstock/v1", kind: "Bundle", documents: documents.map(contentOf) };
}

/** Hands a text to the person as a file. */
export function saveFile(name: string, text: string, type: string): void {
  const url = URL.createObjectURL(new Blob([text], { type }));
  const link = Object.assign(document.createElement("a"), { href: url, download: name });
  link.click();
  URL.revokeObjectURL(url);
}
