import { Button, Text } from "@mantine/core";
import { modals } from "@mantine/modals";
import { useMutation } from "@tanstack/react-query";
import { api, body } from "#/api/client";
import { done, failed } from "#/components/notify";

/** Moves the flows of a worker to the others, after a question. */
export function DrainButton({ worker, flows }: { worker: string; flows: number }) {
  const short = worker.slice(0, 8);
  const drain = useMutation({
    mutationFn: () => body(api.POST("/workers/{worker}/drain", { params: { path: { worker } } })),
    onSuccess: () => done(`Worker ${short} is draining.`),
    onError: (error) => failed(`Worker ${short} can't be drained`, error),
  });
  const ask = () =>
    modals.openConfirmModal({
      title: `Drain worker ${short}?`,
      closeButtonProps: { "aria-label": "Close" },
      children: (
        <Text size="sm">
          {flows === 1 ? "Its flow finishes" : `Its ${flows} flows finish`} the current batch and{" "}
          {flows === 1 ? "moves" : "move"} to other workers. The worker takes no more flows until it is
          restarted.
        </Text>
      ),
      labels: { confirm: "Drain", cancel: "Cancel" },
      onConfirm: () => drain.mutate(),
    });
  return (
    <Button size="compact-sm" variant="default" loading={drain.isPending} onClick={ask}>
      Drain
    </Button>
  );
}
