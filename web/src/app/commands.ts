import type { Role } from "#/access/types";
import type { Verb } from "#/api/documents";
import { type AnyDocument, KINDS, keyOf, pageOf } from "#/api/kinds";
import { includes } from "#/api/session";
import { capital } from "#/components/format";
import { stateWord } from "#/components/StatusBadge";
import { verbsFor } from "#/flows/useControls";

/** Something that the palette can do. */
export interface Command {
  /** The same every time: what was used last is found by it. */
  id: string;
  group: string;
  label: string;
  about?: string;
  /** The page that it leads to. Commands without one do something. */
  to?: string;
  run: () => void;
}

/** A page that was gone to, as the browser remembers it. */
export type Recent = Pick<Command, "id" | "label" | "about"> & { to: string };

const REMEMBERED = 10;

/** What was used last, newest first, after one more command. Only pages: the rest depends on how things are then. */
export function remembered(recent: readonly Recent[], { id, label, about, to }: Command): Recent[] {
  if (to === undefined) return [...recent];
  return [{ id, label, about, to }, ...recent.filter((each) => each.id !== id)].slice(0, REMEMBERED);
}

/** What can be done with a document, in a word. */
export type Deed = "open" | "edit" | "test" | Verb;

/** What makes sense for a document as it is now, of what a role may do. */
export function deedsOf(document: AnyDocument, role: Role): Deed[] {
  const tested = document.kind === "Pipeline" || document.kind === "Task";
  const all: Deed[] = ["open", "edit", ...(tested ? (["test"] as const) : []), ...verbsFor(document)];
  return all.filter((deed) => includes(role, neededFor(deed)));
}

function neededFor(deed: Deed): Role {
  if (deed === "open") return "viewer";
  return deed === "edit" ? "editor" : "operator";
}

/** The least role that may use a page, by its path. */
export function neededAt(page: string): Role {
  const [path = "", query] = page.split("?");
  if (path === "/users" || path === "/audit") return "admin";
  if (/^\/[^/]+\/(new|[^/]+\/edit)$/.test(path)) return "editor";
  return query === "tab=test" || path === "/sql" ? "operator" : "viewer";
}

const DEEDS: Deed[] = ["open", "edit", "test", "pause", "resume", "stop", "start", "restart"];

/** A question such as `pause orders`: the deeds that it may begin with, and what is left to look for. */
export function asked(query: string): { deeds: Deed[]; rest: string } {
  const [, word = "", rest = ""] = /^\s*(\S+)\s+(\S.*)$/.exec(query) ?? [];
  const deeds = word.length >= 2 ? DEEDS.filter((deed) => deed.startsWith(word.toLowerCase())) : [];
  return deeds.length > 0 ? { deeds, rest: rest.trim() } : { deeds: [], rest: query.trim() };
}

/** Beyond so many documents only their pages are offered: one who has found what they look for goes on typing. */
const FEW = 3;

/** Commands for the documents that were found. */
export function commandsFor(
  documents: readonly AnyDocument[],
  deeds: readonly Deed[],
  role: Role,
  run: (deed: Deed, document: AnyDocument) => void,
): Command[] {
  return documents.flatMap((document) => {
    const possible = deedsOf(document, role);
    const offered =
      deeds.length > 0
        ? possible.filter((deed) => deeds.includes(deed))
        : documents.length <= FEW
          ? possible
          : possible.slice(0, 1);
    return offered.map((deed) => ({
      id: `${deed} ${keyOf(document)}`,
      group: "Documents",
      label: deed === "open" ? document.name : `${capital(deed)} ${document.name}`,
      about: [KINDS[document.kind].one, document.id, wordOf(document)].filter(Boolean).join(" · "),
      to: placeOf(deed, document),
      run: () => run(deed, document),
    }));
  });
}

const wordOf = ({ status, phase }: AnyDocument) => (status ? stateWord(status, phase) : null);

/** The page where a deed is done; undefined for a verb, which is done at once. */
export function placeOf(deed: Deed, { kind, id }: AnyDocument): string | undefined {
  const page = pageOf(kind, id);
  const places: Partial<Record<Deed, string>> = {
    open: page,
    edit: `${page}/edit`,
    test: `${page}?tab=test`,
  };
  return places[deed];
}

/** Whether every word of a query is somewhere in a command. */
export function matches({ label, about = "" }: Command, query: string): boolean {
  const text = `${label} ${about}`.toLowerCase();
  return query
    .toLowerCase()
    .split(/\s+/)
    .every((word) => text.includes(word));
}

/** The commands by group, those used last before the others. */
export function grouped(commands: readonly Command[], recent: readonly string[]): [string, Command[]][] {
  const rank = ({ id }: Command) => (recent.includes(id) ? recent.indexOf(id) : recent.length);
  const groups = new Map<string, Command[]>();
  for (const command of commands.toSorted((a, b) => rank(a) - rank(b))) {
    groups.set(command.group, [...(groups.get(command.group) ?? []), command]);
  }
  return [...groups];
}
