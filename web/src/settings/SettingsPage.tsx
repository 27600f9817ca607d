import { Page } from "#/components/Page";

export default function SettingsPage() {
  return <Page title="Settings">.</Page>;
}
