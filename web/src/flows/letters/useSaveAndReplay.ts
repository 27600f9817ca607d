import { useMutation, useQueryClient } from "@tanstack/react-query";
import { ApiError } from "#/api/client";
import type { Kind } from "#/api/kinds";
import { done, failed } from "#/components/notify";
import { belowKey } from "../api";
import { replayLetters, useLetterActions } from "./api";

const FAILED_AGAIN = {
  code: "failed_again",
  message: "the edited event failed again and is kept as a new letter",
  path: null,
  hint: null,
};

/** Saves an edited event and replays its letter from the step that failed, in one step. */
export function useSaveAndReplay(kind: Kind, id: string, offset: number) {
  const queries = useQueryClient();
  const { edit } = useLetterActions(kind, id);
  return useMutation({
    mutationFn: async (event: Record<string, unknown>) => {
      await edit.mutateAsync({ offset, event });
      const result = await replayLetters(kind, id, { offsets: [offset] }, { begin: "step", dryRun: false });
      const problem = result.refused?.[0] ?? result.error ?? (result.failed_again ? FAILED_AGAIN : null);
      if (problem) throw new ApiError(409, [problem]);
    },
    // Messages outlive the editor, which is replaced when the letter has another event.
    onSuccess: () => done(`Saved letter ${offset} and delivered it.`),
    onError: (error) => failed(`Letter ${offset} was not delivered`, error),
    onSettled: () => queries.invalidateQueries({ queryKey: belowKey(kind, id, "letters") }),
  });
}
