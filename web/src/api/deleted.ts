/**
 * The documents that this page deletes. A page that still shows one of them polls it, and the server's `deleted`
 * event may come before the answer to the deletion: requests for such a document are answered here with a 404.
 */
const deleted = new Set<string>();

/** Marks a document, by its path such as `/streams/orders`, as deleted. */
export function markDeleted(path: string): void {
  deleted.add(path);
}

/** Takes the mark back: the document was not deleted, or exists again. */
export function unmarkDeleted(path: string): void {
  deleted.delete(path);
}

/** The answer to a request that reads a deleted document or something below it; undefined for any other request. */
export function answerOfDeleted(request: Request): Response | undefined {
  if (request.method !== "GET" || deleted.size === 0) return undefined;
  const [, place, id] = new URL(request.url).pathname.split("/");
  if (id === undefined || !deleted.has(`/${place}/${decodeURIComponent(id)}`)) return undefined;
  const problem = { code: "not_found", message: "the document has been deleted", path: null, hint: null };
  return Response.json({ ...problem, errors: [problem] }, { status: 404 });
}
