import { Page } from "#/components/Page";

export default function TopologyPage() {
  return <Page title="Topology">.</Page>;
}
