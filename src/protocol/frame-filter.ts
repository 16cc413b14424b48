/** The choice of frames that a reader or a subscriber gets. */
import { z } from "zod";
import type { FrameType } from "./frames.ts";

/** Frames about a connection. A filter cannot select them. */
type ControlType = "snapshot" | "tool.claimed" | "pong" | "mark";
/** Frames without a `seq`. They are lost if the reader is not there. */
type PassingType = "message.delta" | "tool.progress";
type DurableType = Exclude<FrameType, ControlType | PassingType>;

export type SelectableType = DurableType | PassingType;

const DURABLE: Record<DurableType, true> = {
  "conversation.updated": true,
  "participant.joined": true,
  "participant.left": true,
  "turn.started": true,
  "turn.queued": true,
  "turn.waiting": true,
  "turn.completed": true,
  "turn.failed": true,
  "turn.finalized": true,
  "message.user": true,
  "budget.exceeded": true,
  "message.started": true,
  "message.reset": true,
  "message.completed": true,
  "tool.requested": true,
  "approval.requested": true,
  "approval.resolved": true,
  "work.held": true,
  "work.released": true,
  "tool.deferred": true,
  "tool.completed": true,
  "tool.failed": true,
  "tool.cancelled": true,
  "entry.erased": true,
  error: true,
};

const durableTypes = z.enum(Object.keys(DURABLE) as DurableType[]);
const passingTypes = z.enum(["message.delta", "tool.progress"] satisfies PassingType[]);

/** Types of frames with a `seq`. */
export const durableFrameTypes = z.array(durableTypes).min(1);

/** Types of frames that a filter may select. */
export const FRAME_TYPES: ReadonlySet<string> = new Set([...durableTypes.options, ...passingTypes.options]);

const frameTypes = z.array(z.union([durableTypes, passingTypes])).min(1);

/** The members of a filter. Without members a reader gets all frames. */
export const frameFilter = {
  /** Only frames of these types, and the snapshot. */
  types: frameTypes.exactOptional(),
  /** `false`: no text in progress. */
  deltas: z.boolean().exactOptional(),
};

export interface FrameFilter {
  types?: readonly FrameType[];
  deltas?: boolean;
}

export function admits({ types, deltas = true }: FrameFilter, type: FrameType): boolean {
  if (type === "message.delta" && !deltas) return false;
  return types === undefined || types.includes(type) || type === "snapshot";
}
