import { expect, it } from "vitest";
import { edited, read } from "#/documents/editing/yaml";
import { templatesOf } from "./templates";

it.each([...templatesOf("pipelines"), ...templatesOf("tasks")])(
  "the template $title is written as the builder writes",
  ({ text }) => {
    expect(read(text).fault).toBeNull();
    expect(edited(text, () => {})).toBe(text);
  },
);
