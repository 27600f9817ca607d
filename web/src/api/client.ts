import createClient from "openapi-fetch";
import { answerOfDeleted } from "./deleted";
import { parse } from "./json";
import type { components, paths } from "./schema";
import { csrfToken, readSession } from "./session";

/** The REST API; every path, parameter and answer is typed by the server's own OpenAPI document. */
export const api = createClient<paths>({ baseUrl: globalThis.location.origin, fetch: fetched });

/** Fetches an answer whose body is read with all digits of its integers. */
async function fetched(request: Request): Promise<Response> {
  const answer = answerOfDeleted(request) ?? (await reach(request));
  const isJson = answer.headers.get("Content-Type")?.startsWith("application/json");
  if (!isJson || answer.status === 204) return answer;
  const text = await answer.text();
  // The client reads a body by `json()` if its length is known, else by a parser of its own.
  const headers = new Headers({
    ...Object.fromEntries(answer.headers),
    "Content-Length": String(text.length),
  });
  const { status, statusText } = answer;
  const json = () => Promise.resolve().then(() => parse(text));
  return Object.assign(new Response(text, { status, statusText, headers }), { json });
}

/** `fetch` with the token of the session, but an ApiError says that the server does not answer. */
export async function reach(input: Request | string, init?: RequestInit): Promise<Response> {
  const url = typeof input === "string" ? new URL(input, globalThis.location.origin) : input;
  const request = new Request(url, init);
  const token = csrfToken();
  if (token !== null && request.method !== "GET") request.headers.set("X-CSRF-Token", token);
  const answer = await send(request);
  // The session has ended, or its role or token is another one by now. A login that failed says nothing about it.
  const isLogin = new URL(request.url).pathname === "/session";
  if ((answer.status === 401 || answer.status === 403) && !isLogin) readSession().catch(() => undefined);
  return answer;
}

async function send(request: Request): Promise<Response> {
  try {
    return await globalThis.fetch(request); // looked up now, so that a test can put another in its place
  } catch (error) {
    throw (error as Error).name === "AbortError" ? error : unreachable();
  }
}

export type Schemas = components["schemas"];
export type Problem = Schemas["Problem"];

/** What the server refused, with all of its problems. */
export class ApiError extends Error {
  constructor(
    readonly status: number,
    readonly problems: Problem[],
    /** After so many seconds the server would take it; null if it does not say. */
    readonly retryAfter: number | null = null,
  ) {
    super(problems[0]?.message ?? `the server answered ${status}`);
    this.name = "ApiError";
  }

  get code(): string {
    return this.problems[0]?.code ?? "unknown";
  }
}

interface Answer<T> {
  data?: T;
  error?: unknown;
  response: Response;
}

/** The body of an answer; throws ApiError unless it is a good one. */
export async function body<T>(answer: Promise<Answer<T>>): Promise<T> {
  return (await whole(answer)).data as T;
}

/** An answer with its headers; throws ApiError unless it is a good one. */
export async function whole<T>(answer: Promise<Answer<T>>): Promise<Answer<T>> {
  const found = await answer;
  if (!found.response.ok) throw refusal(found.response, found.error);
  return found;
}

/** The problems of anything that was thrown, to be shown to a person. */
export function problemsOf(error: unknown): Problem[] {
  if (error instanceof ApiError) return error.problems;
  const message = error instanceof Error ? error.message : String(error);
  return [{ code: "unexpected", message, path: null, hint: null }];
}

function refusal({ status, headers }: Response, error: unknown): ApiError {
  const given = error as Partial<Schemas["ErrorBody"]> | undefined;
  const seconds = headers.get("Retry-After");
  if (given?.errors?.length)
    return new ApiError(status, given.errors, seconds === null ? null : Number(seconds));
  return new ApiError(status, [
    { code: "http_error", message: `the server answered ${status}`, path: null, hint: null },
  ]);
}

function unreachable(): ApiError {
  return new ApiError(0, [
    {
      code: "unreachable",
      message: "the server isn't responding",
      path: null,
      hint: "nothing was changed; try again when the server is back",
    },
  ]);
}
