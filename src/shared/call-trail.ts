/**
 * The trail of a call. All work that follows from the same message, request or trigger shares it.
 *
 * TRAIL-1  Each actor passes its caller's trail to each run, part of a fan-out, agent, tool and task that it calls, with its own place in
 *          the trace. A retry has the same correlation id and the same trace.
 */
import { z } from "zod";
import { defined } from "./defined.ts";

export interface CallTrail {
  /** Shared by all work that follows from one message, request or trigger. */
  readonly correlationId?: string;
  /** The place of the caller in its trace, as W3C Trace Context has it. */
  readonly traceparent?: string;
}

type Loose<Members> = { [Name in keyof Members]: Members[Name] | undefined };

/** The members of a trail in the schema of a request or an envelope. */
export const trailFields = {
  correlationId: z.string().min(1).max(200).exactOptional(),
  traceparent: z.string().min(1).max(200).exactOptional(),
};

/** Returns only the trail, without members that are `undefined`. */
export function trailOf({ correlationId, traceparent }: Loose<CallTrail>): CallTrail {
  return defined({ correlationId, traceparent });
}
