import { useLocation } from "react-router";
import { KINDS } from "#/api/kinds";
import { Opening } from "#/documents/editing/Opening";
import { StreamForm } from "./form/StreamForm";

const BLANK = { metadata: {}, spec: {} };

/** Creates, clones or edits a stream. */
export default function StreamFormPage() {
  const { key } = useLocation();
  return (
    <Opening kind={KINDS.Stream} blank={BLANK}>
      {(opened, root) => <StreamForm key={opened.id ?? key} opened={opened} root={root} />}
    </Opening>
  );
}
