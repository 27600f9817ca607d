import {
  IconArrowsRightLeft,
  IconDatabaseExport,
  IconDatabaseImport,
  IconTimeline,
  IconTransform,
} from "@tabler/icons-react";
import type { KindName } from "#/api/kinds";

/** The icon of each kind, as in the navigation. */
export const KIND_ICONS: Record<KindName, typeof IconTimeline> = {
  Pipeline: IconArrowsRightLeft,
  Stream: IconTimeline,
  Source: IconDatabaseImport,
  Task: IconTransform,
  Sink: IconDatabaseExport,
};
