import { expect, it } from "vitest";
import { templatesOf } from "./templates";
import { edited, read } from "./yaml";

it.each([...templatesOf("pipelines"), ...templatesOf("tasks")])(
  "the template $title is written as the builder writes",
  ({ text }) => {
    expect(read(text).fault).toBeNull();
    expect(edited(text, () => {})).toBe(text);
  },
);
