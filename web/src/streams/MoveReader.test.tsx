import { screen, waitFor } from "@testing-library/react";
import userEvent from "@testing-library/user-event";
import { expect, it, vi } from "vitest";
import { render } from "#/test/render";
import { of, serve } from "#/test/server";
import { MoveReader, sentences } from "./MoveReader";

const MOVE = {
  stream: "orders",
  before: 90,
  after: 40,
  again: 50,
  skipped: 0,
  loses: ["per_minute"],
  restarts: true,
  applied: false,
};

it("says what a move does before it is made", async () => {
  const asked = serve({ "POST /pipelines/copy/position": MOVE });
  const close = vi.fn();
  render(<MoveReader id="orders" owner="Pipeline/copy" onClose={close} />);
  expect(await screen.findByText(/50 events are read and delivered again/)).toHaveTextContent(
    "The state of per_minute is discarded. The pipeline stops after its current batch and starts again.",
  );
  expect(of(asked, "POST /pipelines/copy/position")[0]?.content).toEqual({ to: "earliest", dry_run: true });
  await userEvent.click(screen.getByRole("button", { name: "Move position" }));
  await waitFor(() => expect(close).toHaveBeenCalled());
  const contents = of(asked, "POST /pipelines/copy/position").map(({ content }) => content);
  expect(contents).toContainEqual({ to: "earliest", dry_run: false });
});

it("counts what is skipped", () => {
  const ahead = { ...MOVE, after: 91, again: 0, skipped: 1, loses: [], restarts: false };
  expect(sentences(ahead, "sink")).toEqual([
    "The sink continues at offset 91 instead of 90.",
    "1 event is skipped and not delivered.",
  ]);
  const still = { ...ahead, after: 90, skipped: 0 };
  expect(sentences(still, "sink")[1]).toBe("No events are read again or skipped.");
});
