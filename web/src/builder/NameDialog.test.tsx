import { screen, waitFor } from "@testing-library/react";
import userEvent from "@testing-library/user-event";
import { useMemo, useState } from "react";
import { expect, it, vi } from "vitest";
import { read } from "#/documents/editing/yaml";
import { render } from "#/test/render";
import { serve } from "#/test/server";
import { type Builder, BuilderContext } from "./context";
import { NameDialog } from "./NameDialog";
import type { Work } from "./useWorkshop";

const apply = vi.fn();

/** The dialog over a document that is only text. */
function Around({ text: given }: { text: string }) {
  const [text, setText] = useState(given);
  const builder = useMemo(
    () =>
      ({
        place: "pipelines",
        value: read(text).value!,
        edit: (edit) => setText((before) => edit(before).text),
      }) as Partial<Builder> as Builder,
    [text],
  );
  const work = { saving: { refused: null, isSaving: false, apply } } as unknown as Work;
  return (
    <BuilderContext value={builder}>
      <NameDialog work={work} onClose={() => {}} />
    </BuilderContext>
  );
}

const IDS: Record<string, string> = { "tag counter": "tag_counter", Заказы: "zakazy" };

function open() {
  serve({
    "GET /pipelines": { items: [{ id: "tag_counter", name: "tag counter" }], total: 1 },
    "POST /validate": (content: { metadata: { name: string } }) => {
      const id = IDS[content.metadata.name] ?? null;
      const problem = {
        code: "no_id",
        message: "no id can be derived",
        path: "metadata.name",
        hint: "add digits",
      };
      return { valid: id !== null, documents: [{ valid: id !== null, id, errors: id ? [] : [problem] }] };
    },
  });
  render(<Around text={"kind: Pipeline\nmetadata:\n  name: tag counter\n"} />);
}

it("shows the id that the server derives, and saves", async () => {
  const user = userEvent.setup();
  open();
  expect(await screen.findByText("There is already a pipeline with this id")).toBeInTheDocument();
  expect(screen.getByRole("button", { name: "Save" })).toBeDisabled();
  await user.clear(screen.getByLabelText("Name"));
  await user.type(screen.getByLabelText("Name"), "Заказы");
  expect(await screen.findByText("zakazy")).toBeInTheDocument();
  await user.click(screen.getByRole("button", { name: "Save" }));
  expect(apply).toHaveBeenCalledOnce();
});

it("says why there is no id", async () => {
  const user = userEvent.setup();
  open();
  await user.clear(screen.getByLabelText("Name"));
  await user.type(screen.getByLabelText("Name"), "ا");
  await waitFor(() =>
    expect(screen.getByLabelText("Name")).toHaveAccessibleDescription("No id can be derived (add digits)"),
  );
  expect(screen.getByRole("button", { name: "Save" })).toBeDisabled();
});
