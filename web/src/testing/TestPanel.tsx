import type { Schemas } from "#/api/client";
import type { Place } from "#/api/kinds";
import { Empty } from "#/components/Page";

export interface TestPanelProps {
  document: object;
  place: Place;
  /** The columns after the source and after each step, as far as they are known. */
  steps?: Schemas["StepSchema"][];
  onSaveCase?: (testCase: object) => void;
  /** The id of the step to show first. */
  selected?: string;
}

/** Tries a document on sample events. */
export default function TestPanel(_: TestPanelProps) {
  return <Empty title="Tests come here soon">Sample events in, every step's output beside its input.</Empty>;
}
