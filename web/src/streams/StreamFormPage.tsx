import { Page } from "#/components/Page";

export default function StreamFormPage() {
  return <Page title="Stream">.</Page>;
}
