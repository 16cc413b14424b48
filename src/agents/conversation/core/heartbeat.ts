/**
 * The heartbeat: the wake-up that restarts lost effects. Pure.
 *
 * BEAT-1  The wait for the next heartbeat equals the age of the work, within `MIN_HEARTBEAT_MS` and `MAX_HEARTBEAT_MS`. So a
 *         crash delays young work briefly, and long work needs few heartbeats.
 */
import { MAX_HEARTBEAT_MS, MIN_HEARTBEAT_MS } from "./conversation-limits.ts";

/** Returns the milliseconds until the next heartbeat of work that began `age` milliseconds ago. */
export function heartbeatIn(age: number): number {
  return Math.min(Math.max(age, MIN_HEARTBEAT_MS), MAX_HEARTBEAT_MS);
}
