import { screen, within } from "@testing-library/react";
import userEvent from "@testing-library/user-event";
import { describe, expect, it } from "vitest";
import { KINDS } from "#/api/kinds";
import { OPEN, takeSession } from "#/api/session";
import { render } from "#/test/render";
import { of, serve } from "#/test/server";
import type { Letter } from "../api";
import LettersTab from "./LettersTab";

const PATH = "/pipelines/orders/dead-letters";

const letter = (offset: number, change: Partial<Letter> = {}): Letter => ({
  ...{ offset, time: "2026-01-01T00:00:00Z", code: "cast_invalid_input", step: "number", attempt: 1 },
  ...{ reason: `'n/a' is no number (${offset})`, revision: 1, key: null, headers: {}, source_offset: offset },
  ...{ event: { id: offset }, state: "new", edited: false, original: null, replay_of: null, replays: [] },
  ...{ obstacle: null, in_input: true },
  ...change,
});

const OBSTACLE = {
  ...{ code: "stateful_replay", path: null, hint: "send the event to the input of the pipeline" },
  message: "step 'once' keeps state: a replayed event would change its results",
};

function show(letters: Letter[]) {
  const page = { letters, next: null, total: letters.length, counts: [], states: { new: 2 }, complete: true };
  const asked = serve({
    [`GET ${PATH}`]: page,
    [`GET ${PATH}/7`]: letters[0],
    [`POST ${PATH}/7/send`]: letters[0],
    [`PUT ${PATH}/7`]: letters[0],
    [`POST ${PATH}/replay`]: { request: "r", replayed: 1, failed_again: 0, refused: [] },
  });
  takeSession(OPEN);
  const document = { kind: "Pipeline", id: "orders", name: "orders" } as never;
  render(<LettersTab kind={KINDS.Pipeline} document={document} />);
  return asked;
}

describe("the dead letters of a flow", () => {
  it("come newest first, each with its reason", async () => {
    const asked = show([letter(7), letter(6)]);
    const rows = await screen.findAllByRole("row");
    expect(rows[1]).toHaveTextContent("cast_invalid_input'n/a' is no number (7)");
    expect(of(asked, `GET ${PATH}`)[0]!.query).toContain("order=newest");
  });

  it("say why they can't be replayed, and are sent to the input", async () => {
    const asked = show([
      letter(7, { obstacle: OBSTACLE }),
      letter(6, { obstacle: OBSTACLE, in_input: false }),
    ]);
    const notice = await screen.findByRole("alert");
    expect(notice).toHaveTextContent("2 letters can't be replayed");
    expect(notice).toHaveTextContent("step 'once' keeps state");
    await userEvent.click(screen.getByRole("checkbox", { name: "Select letter 7" }));
    expect(screen.getByRole("button", { name: "Replay" })).toBeDisabled();
    await userEvent.click(screen.getByRole("button", { name: "Send to input" }));
    const question = await screen.findByRole("dialog");
    await userEvent.click(within(question).getByRole("button", { name: "Send to input" }));
    expect(of(asked, `POST ${PATH}/7/send`)).toHaveLength(1);
  });
});
