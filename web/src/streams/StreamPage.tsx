import { Page } from "#/components/Page";

export default function StreamPage() {
  return <Page title="Stream">.</Page>;
}
