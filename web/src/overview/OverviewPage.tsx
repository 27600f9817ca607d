import { Page } from "#/components/Page";

export default function OverviewPage() {
  return <Page title="Overview">.</Page>;
}
