/**
 * Turns that a later turn replaces: they leave the windows of the session, and stay in the store. Pure.
 *
 * SUPERSEDE-1  A supersession with the turns `[first, next)` hides the events of these turns from all windows that include it. A turn is the
 *              number in the ids of its messages and operations. Events without a turn stay, and also late results.
 */
import { parseItemId } from "../../protocol/ids.ts";
import { EventAction, type SessionEvent } from "./session-event.ts";

type Superseding = Pick<SessionEvent, "id" | "metadata"> & { action: string };

/** Follows a session from its newest event to its oldest. */
export class Supersessions {
  readonly #spans: (readonly [first: number, next: number])[] = [];

  /** Takes the next older event. Reports whether a later event supersedes it. */
  skips(event: Superseding): boolean {
    const span = event.action === EventAction.SUPERSESSION ? supersededBy(event) : undefined;
    const n = span?.[1] ?? turnOf(event.id);
    const isSkipped = n !== undefined && this.#spans.some(([first, next]) => first <= n && n < next);
    if (span !== undefined) this.#spans.push(span);
    return isSkipped;
  }
}

/** Returns the turns that an event supersedes; `undefined` without such turns. */
function supersededBy({ metadata }: Pick<Superseding, "metadata">): readonly [number, number] | undefined {
  const { supersedes } = metadata ?? {};
  if (!Array.isArray(supersedes)) return undefined;
  const [first, next]: unknown[] = supersedes;
  return typeof first === "number" && typeof next === "number" ? [first, next] : undefined;
}

function turnOf(id: string): number | undefined {
  return parseItemId(id.startsWith("pending_") ? id.slice("pending_".length) : id)?.n;
}
