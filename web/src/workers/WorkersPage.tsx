import { Page } from "#/components/Page";

export default function WorkersPage() {
  return <Page title="Workers">.</Page>;
}
