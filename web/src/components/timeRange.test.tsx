import { fireEvent, screen } from "@testing-library/react";
import userEvent from "@testing-library/user-event";
import { describe, expect, it, vi } from "vitest";
import { render } from "#/test/render";
import { RangePicker } from "./RangePicker";
import { axisOf, localText, spanOf } from "./timeRange";

describe("a time range", () => {
  it("is written and read in the time zone of the reader", () => {
    const at = new Date(2026, 0, 2, 3, 4, 5).getTime();
    expect(localText(at)).toBe("2026-01-02T03:04:05");
    expect(spanOf(localText(at), localText(at + 60_000))).toEqual({ from: at, to: at + 60_000 });
  });

  it("has an end after its start", () => {
    expect(spanOf("2026-01-02T03:04", "2026-01-02T03:04")).toBe("The end must be after the start.");
    expect(spanOf("", "2026-01-02T03:04")).toBe("Enter a start and an end.");
  });

  it("is an axis of the last minutes or of fixed moments", () => {
    expect(axisOf({ minutes: 60 })).toEqual({ minutes: 60 });
    expect(axisOf({ from: 1, to: 2 })).toEqual({ span: { from: 1, to: 2 } });
  });
});

describe("RangePicker", () => {
  it("shows a range that was chosen, and leads back", async () => {
    const change = vi.fn();
    render(<RangePicker range={{ from: 0, to: 60_000 }} onChange={change} />);
    await userEvent.click(screen.getByRole("button", { name: "Reset zoom" }));
    expect(change).toHaveBeenCalledWith({ minutes: 15 });
  });

  it("takes two moments", async () => {
    const change = vi.fn();
    render(<RangePicker range={{ minutes: 15 }} onChange={change} />);
    await userEvent.click(screen.getByRole("button", { name: "Custom" }));
    fireEvent.change(screen.getByLabelText("From"), { target: { value: "2026-01-02T03:00:00" } });
    fireEvent.change(screen.getByLabelText("To"), { target: { value: "2026-01-02T02:00:00" } });
    expect(screen.getByRole("alert")).toHaveTextContent("The end must be after the start.");
    fireEvent.change(screen.getByLabelText("To"), { target: { value: "2026-01-02T04:00:00" } });
    await userEvent.click(screen.getByRole("button", { name: "Show" }));
    const from = new Date("2026-01-02T03:00:00").getTime();
    expect(change).toHaveBeenCalledWith({ from, to: from + 3_600_000 });
  });
});
