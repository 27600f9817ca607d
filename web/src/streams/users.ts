import type { Schemas } from "#/api/client";
import { type KindName, pageOf } from "#/api/kinds";

/** A document that reads or writes a stream. */
export interface User {
  kind: KindName;
  id: string;
  name: string;
  page: string;
  /** What it does with the stream, in words. */
  does: string;
}

interface Users {
  writers: User[];
  readers: User[];
}

/** Which places of a document mean what to the stream that is named there. */
const PLACES: [kind: KindName | null, path: RegExp, side: keyof Users, does: string][] = [
  [null, /\.dead_letters$/, "writers", "writes its dead letters here"],
  [null, /processors\[\d+\]\.late$/, "writers", "writes late events here"],
  [null, /processors\[\d+\]\.stream$/, "readers", "joins with it"],
  ["Source", /./, "writers", "publishes to it"],
  ["Sink", /./, "readers", "subscribes to it"],
  [null, /^spec\.(source|input)/, "readers", "reads it"],
  [null, /./, "writers", "writes to it"],
];

/** Who writes and who reads a stream, by where they name it. */
export function usersOf(referrers: readonly Schemas["Referrer"][]): Users {
  const users: Users = { writers: [], readers: [] };
  for (const { kind, id, name, path } of referrers) {
    const [, , side, does] = PLACES.find(
      ([owner, place]) => (owner === null || owner === kind) && place.test(path),
    )!;
    users[side].push({ kind: kind as KindName, id, name, page: pageOf(kind as KindName, id), does });
  }
  return users;
}

/** Those that can take a part of a stream once more. */
export const replayable = (readers: readonly User[]) =>
  readers.filter(({ kind, does }) => does === "reads it" && (kind === "Pipeline" || kind === "Task"));
