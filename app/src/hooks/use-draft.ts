/** The unsent message of a composer. Its text survives a reload and the button Back; its files do not. */
import { useState } from "react";
import type { Draft } from "../content.ts";
import { store, stored } from "../storage.ts";

/** `place` names the composer: the id of a conversation, or `new`. */
export function useDraft(place: string): [Draft, (change: (draft: Draft) => Draft) => void] {
  const key = `dramatis.draft.${place}`;
  const [draft, setDraft] = useState<Draft>(() => ({ text: stored(key) ?? "", files: [] }));
  const change = (next: (draft: Draft) => Draft) =>
    setDraft((old) => {
      const draft = next(old);
      if (draft.text !== old.text) store(key, draft.text === "" ? null : draft.text);
      return draft;
    });
  return [draft, change];
}
