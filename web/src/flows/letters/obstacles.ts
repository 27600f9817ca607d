import type { Letter } from "../api";

/** Whether a letter can't be replayed at all: others can be from the first step, if not from their own. */
export const isBlocked = ({ obstacle }: Letter): boolean => obstacle?.code === "stateful_replay";
