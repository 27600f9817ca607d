import { screen, waitFor } from "@testing-library/react";
import userEvent from "@testing-library/user-event";
import { expect, it, vi } from "vitest";
import { render } from "#/test/render";
import { UploadDialog } from "./UploadDialog";

const PROBLEM = {
  code: "unknown_field",
  message: "pipeline 'orders': there is no field 'bad'",
  path: "documents[1].spec.bad",
  hint: null,
};

/** Answers uploads when the test says so, and tells how far they are meanwhile. */
function server(answer: Promise<Response>) {
  const asked: string[] = [];
  vi.stubGlobal("fetch", async (request: Request) => {
    const { pathname } = new URL(request.url);
    asked.push(`${request.method} ${pathname.replace(/[0-9a-f-]{36}/, "ID")}`);
    return pathname === "/bundle" ? answer : Response.json({ checked: 1200, total: 2000 });
  });
  return asked;
}

it("shows how far a large upload is, and its problems at once by kind and name", async () => {
  let respond: (response: Response) => void = () => undefined;
  const asked = server(
    new Promise((resolve) => {
      respond = resolve;
    }),
  );
  render(<UploadDialog opened onClose={() => undefined} />);
  await userEvent.type(screen.getByRole("textbox", { name: "Documents" }), "kind: Stream");
  expect(await screen.findByText("Checked 1,200 of 2,000 documents")).toBeInTheDocument();
  respond(Response.json({ ...PROBLEM, errors: [PROBLEM] }, { status: 503 }));
  expect(await screen.findByText(/pipeline 'orders': there is no field 'bad'/)).toHaveTextContent("spec.bad");
  expect(screen.queryByText(/documents\[1\]/)).toBeNull();
  await waitFor(() => expect(screen.queryByText(/Checked/)).toBeNull());
  expect(asked.filter((each) => each === "POST /bundle")).toHaveLength(1);
});
