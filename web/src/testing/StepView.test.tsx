import { screen, within } from "@testing-library/react";
import userEvent from "@testing-library/user-event";
import { describe, expect, it } from "vitest";
import { render } from "#/test/render";
import { StepView } from "./StepView";
import type { StepResult } from "./trace";

const STEP: StepResult = {
  id: "taxed",
  type: "filter",
  columns: [],
  output: [{ id: 1, gross: 95.2, $meta: { offset: 0 } }],
  dropped: 1,
  dropped_events: [{ id: 2, $meta: { offset: 1 } }],
  errors: [{ code: "divide_by_zero", message: "division by zero", event: { id: 3, $meta: { offset: 2 } } }],
  late: [],
  logs: ["hello"],
  ms: 3,
};

describe("StepView", () => {
  it("says what became of each event", () => {
    render(<StepView steps={[STEP]} input={[{ id: 1 }, { id: 2 }, { id: 3 }]} />);
    const card = within(screen.getByRole("region", { name: "Step taxed" }));
    expect(card.getByText("3 in")).toBeVisible();
    expect(card.getByText("+gross")).toBeVisible();
    expect(card.getByText(/the condition is not true/)).toBeVisible();
    expect(card.getByText(/division by zero \(divide_by_zero\)/)).toBeVisible();
    expect(card.getByText("hello")).toBeVisible();
    const row = within(card.getByRole("table", { name: "Fields of event 0" })).getByRole("row", {
      name: /gross/,
    });
    expect(within(row).getByText("added")).toBeInTheDocument();
  });

  it("follows one event, and folds what is the same", async () => {
    render(<StepView steps={[STEP]} input={[{ id: 1 }, { id: 2 }, { id: 3 }]} />);
    await userEvent.click(screen.getByRole("switch", { name: "Only changed fields" }));
    expect(
      within(screen.getByRole("table", { name: "Fields of event 0" })).queryByText("id"),
    ).not.toBeInTheDocument();
    await userEvent.click(screen.getByRole("combobox", { name: "Follow one event" }));
    await userEvent.click(screen.getByRole("option", { name: "Event 1" }));
    expect(screen.queryByText(/division by zero/)).not.toBeInTheDocument();
    expect(screen.getByText(/the condition is not true/)).toBeVisible();
  });
});
