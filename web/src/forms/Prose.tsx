import { Code } from "@mantine/core";
import { Fragment, type ReactNode } from "react";

/** A sentence with `names` in it, as descriptions have them. */
export function Prose({ text }: { text: string }): ReactNode {
  return text.split("`").map((part, place) => (
    // biome-ignore lint/suspicious/noArrayIndexKey: the parts of a text do not move
    <Fragment key={place}>{place % 2 === 1 ? <Code>{part}</Code> : part}</Fragment>
  ));
}
