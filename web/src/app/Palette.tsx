import { Spotlight, type SpotlightActionData, spotlight } from "@mantine/spotlight";
import { useNavigate } from "react-router";
import { KIND_LIST } from "#/api/kinds";

export const openPalette = () => spotlight.open();

/** Ctrl-K: go anywhere, do anything. */
export function Palette() {
  const navigate = useNavigate();
  const actions: SpotlightActionData[] = KIND_LIST.map((kind) => ({
    id: kind.place,
    label: kind.title,
    description: kind.about,
    onClick: () => navigate(`/${kind.place}`),
  }));
  return (
    <Spotlight actions={actions} shortcut={["mod + K", "mod + P"]} nothingFound="Nothing is called so" />
  );
}
