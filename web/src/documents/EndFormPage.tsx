import { useLocation } from "react-router";
import { KIND_LIST, type Place } from "#/api/kinds";
import { Opening } from "./editing/Opening";
import { EndForm } from "./ends/EndForm";

const BLANK = { metadata: {}, spec: {} };

/** Creates, clones or edits a registered source or sink. */
export default function EndFormPage({ place }: { place: Place }) {
  const kind = KIND_LIST.find((each) => each.place === place)!;
  const { key } = useLocation();
  return (
    <Opening kind={kind} blank={BLANK}>
      {(opened, root) => <EndForm key={opened.id ?? key} kind={kind} opened={opened} root={root} />}
    </Opening>
  );
}
