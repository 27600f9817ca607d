import { Text } from "@mantine/core";
import { useMemo } from "react";
import { Problems } from "#/components/Problems";
import { LazyCodeEditor } from "#/editors/LazyCodeEditor";
import type { Mark } from "#/editors/language";
import type { Editing } from "./useEditing";
import { locate } from "./yaml";

/** The document as text, with what is wrong marked at its line. */
export function YamlPane({ editing: { text, fault, problems, write } }: { editing: Editing }) {
  const marks = useMemo((): Mark[] => {
    if (fault) return [fault];
    return problems.map(({ path, message }) => {
      if (!path) return { message };
      const { line, column } = locate(text, path);
      return { message, line, column };
    });
  }, [text, fault, problems]);
  return (
    <>
      <LazyCodeEditor
        language="yaml"
        label="Document as YAML"
        value={text}
        onChange={write}
        problems={marks}
        minHeight={360}
      />
      {fault ? (
        <Text size="sm" c="red" role="status">
          {fault.message} (line {fault.line}, column {fault.column})
        </Text>
      ) : (
        <Problems problems={problems} />
      )}
    </>
  );
}
