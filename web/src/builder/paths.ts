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

/** The parts of a place as the server writes it. */
export function formatPath(parts: Path): string {
  return parts.reduce<string>((path, part) => {
    if (typeof part === "number") return `${path}[${part}]`;
    return path ? `${path}.${part}` : part;
  }, "");
}

/** Whether a place is `above`, or lies below it. */
export function isWithin(path: string, above: string): boolean {
  return path === above || path.startsWith(`${above}.`) || path.startsWith(`${above}[`);
}
