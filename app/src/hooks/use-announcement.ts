/**
 * What a screen reader is told. Streamed text would be read in fragments, so it is announced that an answer is being
 * written, and then the whole of it.
 */
import { useEffect, useRef, useState } from "react";
import { type TurnState, textOf } from "../../../src/client/index.ts";

export function useAnnouncement(turns: readonly TurnState[]): string {
  const [text, setText] = useState("");
  const seen = useRef(new Map<string, TurnState>());

  useEffect(() => {
    for (const turn of turns) {
      const before = seen.current.get(turn.id);
      if (before === turn) continue;
      seen.current.set(turn.id, turn);
      const change = describeChange(before, turn);
      if (change !== null) setText(change);
    }
  }, [turns]);

  return text;
}

function describeChange(before: TurnState | undefined, turn: TurnState): string | null {
  if (turn.status === "active") {
    if (turn.retrying && before?.retrying !== true) return "An attempt failed. Retrying.";
    return before === undefined ? "An answer is being written." : null;
  }
  if (before?.status !== "active") return null;
  if (turn.status === "failed") return `The turn failed. ${turn.error?.message ?? ""}`;
  const last = turn.items.findLast((item) => item.type === "message" && item.message.role === "agent");
  return last?.type === "message" ? textOf(last.message.content) : null;
}
