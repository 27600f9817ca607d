/** What an editor can highlight. */
export type Language = "sql" | "javascript" | "yaml" | "json" | "text";

export interface Column {
  name: string;
  type: string;
}

/** Something that is wrong with a text, marked where it is known where. */
export interface Mark {
  line?: number;
  column?: number;
  message: string;
  level?: "error" | "warning";
}

export interface EditorProps {
  language: Language;
  value: string;
  onChange?: (value: string) => void;
  readOnly?: boolean;
  /** The accessible name. */
  label: string;
  /** Columns of the events that come in: completed in SQL and JavaScript. */
  columns?: Column[];
  /** Tables that a query may name, with their columns; without them SQL sees the columns as the table `input`. */
  tables?: Record<string, Column[]>;
  problems?: Mark[];
  minHeight?: number;
  maxHeight?: number;
}
