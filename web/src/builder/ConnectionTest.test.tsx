import { screen } from "@testing-library/react";
import userEvent from "@testing-library/user-event";
import { afterEach, describe, expect, it, vi } from "vitest";
import { render } from "#/test/render";
import { ConnectionTest } from "./ConnectionTest";

const answers = (answer: object) =>
  vi.stubGlobal(
    "fetch",
    vi.fn(async () => Response.json({ checked: true, problems: [], offers: {}, sample: [], ...answer })),
  );

const press = () => userEvent.click(screen.getByRole("button", { name: "Test connection" }));

describe("the connection test", () => {
  afterEach(() => vi.unstubAllGlobals());

  it("says that the connection works, and what there is", async () => {
    answers({ offers: { topics: ["orders", "bids"] } });
    const value = { brokers: ["localhost:9092"] };
    const { rerender } = render(<ConnectionTest side="source" type="kafka" value={value} />);
    await press();
    expect(await screen.findByText("Connection OK.")).toBeInTheDocument();
    expect(screen.getByText("topics: orders, bids")).toBeInTheDocument();
    rerender(<ConnectionTest side="source" type="kafka" value={{ brokers: ["elsewhere:9092"] }} />);
    expect(screen.queryByText("Connection OK.")).toBeNull();
  });

  it("says what is wrong and what to do", async () => {
    answers({
      problems: [{ code: "unreachable", message: "no connection", path: "brokers", hint: "check" }],
    });
    render(<ConnectionTest side="sink" type="kafka" value={{}} />);
    await press();
    expect(await screen.findByText("no connection", { exact: false })).toBeInTheDocument();
    expect(screen.getByText("check")).toBeInTheDocument();
  });

  it("says that a connector has none", async () => {
    answers({ checked: false });
    render(<ConnectionTest side="sink" type="drop" value={{}} />);
    await press();
    expect(await screen.findByText("This connector has no connection test.")).toBeInTheDocument();
  });
});
