import { Progress, Stack, Text } from "@mantine/core";
import { useQuery } from "@tanstack/react-query";
import { useEffect, useState } from "react";
import { count } from "#/components/format";
import { importProgress } from "./bundle";

/** Shorter waits need no words. */
const PATIENCE_MS = 500;

/** How far the import with an id is, while it is under way. */
export function ImportProgress({ id, what }: { id: string; what: "Checking" | "Importing" }) {
  const [isLong, setLong] = useState(false);
  useEffect(() => {
    const timer = setTimeout(() => setLong(true), PATIENCE_MS);
    return () => clearTimeout(timer);
  }, []);
  const { data } = useQuery({
    queryKey: ["import progress", id],
    queryFn: () => importProgress(id),
    enabled: isLong && id !== "",
    refetchInterval: 500,
    retry: false,
    gcTime: 0,
  });
  if (!isLong) return null;
  const isChecked = data && data.checked >= data.total;
  return (
    <Stack gap={4}>
      <Progress
        value={data ? (100 * data.checked) / data.total : 100}
        animated={!data || isChecked === true}
        aria-label={what}
      />
      <Text size="sm" c="dimmed" role="status">
        {!data && `${what} the documents`}
        {data && !isChecked && `Checked ${count(data.checked)} of ${count(data.total)} documents`}
        {isChecked &&
          (what === "Checking"
            ? "Comparing with the saved documents"
            : `Saving ${count(data.total)} documents`)}
      </Text>
    </Stack>
  );
}
