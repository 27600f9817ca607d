import { screen } from "@testing-library/react";
import userEvent from "@testing-library/user-event";
import { expect, it, vi } from "vitest";
import { render } from "#/test/render";
import { CaseCard } from "./CaseCard";
import type { CaseResult } from "./cases";

const CASE = { name: "one", input: [{ id: 1 }], expect: { output: [{ id: 1 }] } };
const RESULT: CaseResult = {
  name: "one",
  passed: false,
  differences: [{ where: "output[0].id", message: "is another one", expected: 1, actual: 2 }],
  errors: [],
  ms: 12,
};

function shown(more: Partial<Parameters<typeof CaseCard>[0]> = {}) {
  const calls = { onRun: vi.fn(), onTry: vi.fn(), onRename: vi.fn(), onDelete: vi.fn() };
  render(
    <CaseCard
      testCase={CASE}
      result={RESULT}
      isOld={false}
      isRunning={false}
      isBusy={false}
      taken={["two"]}
      {...calls}
      {...more}
    />,
  );
  return calls;
}

it("says what differs", () => {
  shown();
  expect(screen.getByText("failed")).toBeVisible();
  expect(screen.getByRole("row", { name: /output\[0\]\.id is another one 1 2/ })).toBeVisible();
});

it("says that a result is old", () => {
  shown({ isOld: true });
  expect(screen.getByText(/before the last change/)).toBeVisible();
});

it("takes a new name that no other has, and Escape leaves the old one", async () => {
  const { onRename } = shown();
  await userEvent.click(screen.getByRole("button", { name: "Rename one" }));
  const field = screen.getByRole("textbox", { name: "New name of one" });
  await userEvent.clear(field);
  await userEvent.type(field, "two{Enter}");
  expect(onRename).not.toHaveBeenCalled();
  expect(screen.getByText("Another test case has this name")).toBeVisible();
  await userEvent.type(field, "{Escape}");
  expect(onRename).not.toHaveBeenCalled();
  await userEvent.click(screen.getByRole("button", { name: "Rename one" }));
  await userEvent.type(screen.getByRole("textbox", { name: "New name of one" }), " more{Enter}");
  expect(onRename).toHaveBeenCalledWith("one more");
});
