import createClient from "openapi-fetch";
import { answerOfDeleted } from "./deleted";
import { parse } from "./json";
import type { components, paths } from "./schema";

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

/** `fetch`, but an ApiError says that the server does not answer. */
export async function reach(input: RequestInfo, init?: RequestInit): Promise<Response> {
  try {
    return await globalThis.fetch(input, init); // looked up now, so that a test can put another in its place
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
  if (!found.response.ok) throw refusal(found.response.status, found.error);
  return found;
}

/** The problems of anything that was thrown, to be shown to a person. */
export function problemsOf(error: unknown): Problem[] {
  if (error instanceof ApiError) return error.problems;
  const message = error instanceof Error ? error.message : String(error);
  return [{ code: "unexpected", message, path: null, hint: null }];
}

function refusal(status: number, error: unknown): ApiError {
  const given = error as Partial<Schemas["ErrorBody"]> | undefined;
  if (given?.errors?.length) return new ApiError(status, given.errors);
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
