/** A place in a document: names of fields and numbers of items, from the top. */
export type Path = (string | number)[];

/** `spec.sinks[1].path` as its parts. */
export function parsePath(path: string): Path {
  const parts: Path = [];
  for (const [, name, number] of path.matchAll(/([^.[\]]+)|\[(\d+)\]/g)) {
    parts.push(number === undefined ? name! : Number(number));
  }
  return parts;
}
