import { KIND_LIST, type Place } from "#/api/kinds";
import { Page } from "#/components/Page";

export default function FlowPage({ place }: { place: Place }) {
  return <Page title={KIND_LIST.find((kind) => kind.place === place)?.title ?? place}>.</Page>;
}
