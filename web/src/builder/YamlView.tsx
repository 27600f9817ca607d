import { useMemo } from "react";
import { type Fault, locate } from "#/documents/editing/yaml";
import { LazyCodeEditor } from "#/editors/LazyCodeEditor";
import type { Mark } from "#/editors/language";
import { useBuilder } from "./context";

interface Props {
  text: string;
  fault: Fault | null;
  onChange: (text: string) => void;
}

/** The document as text, with what is wrong marked at its line. */
export function YamlView({ text, fault, onChange }: Props) {
  const { check } = useBuilder();
  const marks = useMemo((): Mark[] => {
    if (fault) return [fault];
    const placed = (level: "error" | "warning") => (problem: { path?: string | null; message: string }) => ({
      ...(problem.path
        ? { line: locate(text, problem.path).line, column: locate(text, problem.path).column }
        : {}),
      message: problem.message,
      level,
    });
    return [...check.errors.map(placed("error")), ...check.warnings.map(placed("warning"))];
  }, [text, fault, check.errors, check.warnings]);
  return (
    <LazyCodeEditor
      language="yaml"
      label="Document as YAML"
      value={text}
      onChange={onChange}
      problems={marks}
      minHeight={400}
    />
  );
}
