/** What compactions leave of a session's events. Pure. */
import { EventAction, type SessionEvent } from "./types.ts";

export type CompactionEvent = Extract<SessionEvent, { action: EventAction.COMPACTION }>;

export interface Compacted {
  /** The compactions whose summaries stand in front, ascending. */
  summaries: CompactionEvent[];
  /** The events that are sent, in order; without a compaction that covers anything, all of them. */
  left: SessionEvent[];
  /** Events with a lower number are covered. */
  covered: number;
}

/** Takes the events that a compaction among `events` covers out of them. */
export function compacted(events: readonly SessionEvent[]): Compacted {
  const position = positions(events);
  const covered = events.reduce((most, event, index) => {
    return isCompaction(event) ? Math.max(most, coverage(event, position(index))) : most;
  }, 0);
  if (covered === 0) return { summaries: [], left: [...events], covered };
  const uncovered = events.filter((_, index) => position(index) >= covered);
  return {
    summaries: uncovered.filter(isCompaction),
    left: uncovered.filter((event) => !isCompaction(event)),
    covered,
  };
}

export function isCompaction(event: SessionEvent): event is CompactionEvent {
  return event.action === EventAction.COMPACTION;
}

/** How many events a compaction at `position` covers: none that comes after it. */
export function coverage({ compactedEventCount }: CompactionEvent, position: number): number {
  return Math.min(compactedEventCount, position);
}

/**
 * Position of an event in its session: its sequence number, which also counts what lies before the window. Events that
 * were never stored share a placeholder, so there the index has to do.
 */
function positions(events: readonly SessionEvent[]): (index: number) => number {
  const ascending = events.every((event, index) => index === 0 || event.seq > (events[index - 1]?.seq ?? 0));
  return (index) => (ascending ? (events[index]?.seq ?? index) : index);
}
