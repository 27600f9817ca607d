import { vi } from "vitest";

type Reply = unknown | ((content: unknown) => unknown);

export interface Asked {
  /** Such as `POST /session`, without the query. */
  what: string;
  query: string;
  content: unknown;
  headers: Headers;
}

/** An answer that is not a good one, as the server gives it. */
export function refused(status: number, code: string, message: string, headers: HeadersInit = {}): Response {
  const problem = { code, message, path: null, hint: null };
  return Response.json({ ...problem, errors: [problem] }, { status, headers });
}

/**
 * Answers requests by method and path until the test ends: with JSON, with a Response, or with what a function
 * makes of the content. Returns what was asked, in order.
 */
export function serve(replies: Record<string, Reply>): Asked[] {
  const asked: Asked[] = [];
  vi.stubGlobal("fetch", async (input: Request | string, init?: RequestInit) => {
    const request = input instanceof Request ? input : new Request(new URL(input, location.origin), init);
    const url = new URL(request.url);
    const what = `${request.method} ${url.pathname}`;
    const text = await request.text();
    const content = text ? JSON.parse(text) : undefined;
    asked.push({ what, query: url.search, content, headers: request.headers });
    const reply = replies[what];
    const found = await (typeof reply === "function" ? reply(content) : reply);
    if (found instanceof Response) return found.clone();
    if (found === undefined) return refused(404, "not_found", `nothing at ${what}`);
    return found === null ? new Response(null, { status: 204 }) : Response.json(found);
  });
  return asked;
}

/** What was asked of one place. */
export const of = (asked: readonly Asked[], what: string) => asked.filter((each) => each.what === what);
