import { screen, waitFor } from "@testing-library/react";
import userEvent from "@testing-library/user-event";
import { useLocation } from "react-router";
import { afterEach, expect, it } from "vitest";
import { render } from "#/test/render";
import { serve } from "#/test/server";
import { HelpMenu } from "./HelpMenu";
import { TourCard } from "./TourCard";
import { TourOffer } from "./TourOffer";
import { useTour } from "./useTour";

function Around() {
  const tour = useTour();
  const { pathname, search } = useLocation();
  return (
    <>
      <HelpMenu tour={tour} />
      <TourOffer tour={tour} />
      <TourCard tour={tour} />
      <output>{pathname + search}</output>
    </>
  );
}

const pipelines = (...ids: string[]) => {
  const items = ids.map((id) => ({ id, name: id, metadata: {}, spec: {} }));
  serve({ "GET /pipelines": { items, total: items.length } });
};
const at = () => screen.getByRole("status").textContent;
const click = (name: string) => userEvent.setup().click(screen.getByRole("button", { name }));

afterEach(() => localStorage.clear());

it("leads through five pages of the demo, and stays away once it is over", async () => {
  pipelines("demo_orders");
  const { unmount } = render(<Around />);
  await click("Take the tour");
  expect(screen.getByText("Step 1 of 5")).toBeInTheDocument();
  expect(at()).toBe("/");
  const seen = [];
  for (let step = 2; step <= 5; step++) {
    await click("Next");
    expect(screen.getByText(`Step ${step} of 5`)).toBeInTheDocument();
    seen.push(at());
  }
  expect(seen).toEqual([
    "/topology",
    "/pipelines/demo_orders?tab=letters",
    "/streams/demo_clicks?tab=live",
    "/pipelines/new",
  ]);
  await click("Back");
  expect(screen.getByText("Step 4 of 5")).toBeInTheDocument();
  await click("Next");
  await click("Done");
  expect(screen.queryByRole("region", { name: "Tour" })).not.toBeInTheDocument();
  unmount();
  render(<Around />);
  expect(screen.queryByText(/New to Penstock/)).not.toBeInTheDocument();
});

it("can be dismissed, and started again from the help menu", async () => {
  pipelines("other");
  render(<Around />);
  await click("Dismiss");
  expect(screen.queryByText(/New to Penstock/)).not.toBeInTheDocument();
  await click("Help");
  await userEvent.setup().click(await screen.findByRole("menuitem", { name: "Take the tour" }));
  await waitFor(() => expect(screen.getByRole("region", { name: "Tour" })).toBeInTheDocument());
  await click("Next");
  await click("Next");
  expect(at()).toBe("/pipelines");
  await click("End the tour");
  expect(screen.queryByRole("region", { name: "Tour" })).not.toBeInTheDocument();
});
