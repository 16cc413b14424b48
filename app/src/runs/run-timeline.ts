/**
 * The timeline of a run: each visit of a node as a bar on one axis. Pure.
 *
 * RUNLINE-1  Each visit of a node has one row. The rows are in the order of their beginnings.
 * RUNLINE-2  A bar stays within the time of the run. The bar of a visit without an end reaches the present.
 */
import type { RunToken } from "./run-log.ts";

export interface TimelineRow {
  token: RunToken;
  /** Milliseconds from the beginning of the run. */
  startsAfter: number;
  durationMs: number;
  /** The visit has not ended. */
  isOpen: boolean;
  /** The bar: its beginning and its length, as fractions of the whole room. */
  left: number;
  width: number;
}

/** `from` and `to` are the beginning of the run, and its end or the present, in milliseconds since the epoch. */
export function timelineOf(tokens: Iterable<RunToken>, from: number, to: number): TimelineRow[] {
  const room = Math.max(1, to - from);
  const within = (time: number) => Math.min(from + room, Math.max(from, time));
  return [...tokens]
    .map((token) => {
      const begin = within(Date.parse(token.startedAt ?? token.createdAt));
      const end = token.endedAt === undefined ? from + room : within(Date.parse(token.endedAt));
      const durationMs = Math.max(0, end - begin);
      return {
        ...{ token, startsAfter: begin - from, durationMs, isOpen: token.endedAt === undefined },
        ...{ left: (begin - from) / room, width: durationMs / room },
      };
    })
    .toSorted((one, other) => one.startsAfter - other.startsAfter || one.token.id - other.token.id);
}
