/** The messages of the scenario `background`. The text of a message is its script. The model and the checker read it. */
import { z } from "zod";

export const BACKGROUND_AGENT = "worker";

/** Tools in the background. `research` is idempotent, `charge` acts once, and `pay` acts once and has a later result. */
export const BACKGROUND_TOOLS = ["research", "charge", "pay"] as const;
export type BackgroundTool = (typeof BACKGROUND_TOOLS)[number];

const scriptSchema = z.strictObject({
  /** Id of the signal. */
  key: z.string(),
  calls: z.array(z.enum(BACKGROUND_TOOLS)),
  /** Duration of a tool, or delay of a later result, in milliseconds. */
  ms: z.int(),
});
export type BackgroundScript = z.infer<typeof scriptSchema>;

export function textOf(script: BackgroundScript): string {
  return JSON.stringify(script);
}

/** Parses a script; `null` for any other text. */
export function scriptIn(content: unknown): BackgroundScript | null {
  if (typeof content !== "string" || !content.startsWith("{")) return null;
  return scriptSchema.parse(JSON.parse(content));
}

/** Returns the name of a call. It is in the request to the outside. */
export function callName(key: string, index: number): string {
  return `${key}/${index}`;
}

/** Number of messages in a large batch. It exceeds the limit of active turns. */
const LARGE = 80;

/** Returns the messages of a batch: 3 to 10 messages with calls, or many messages without calls. */
export function randomBatch(random: () => number, name: string, isLarge: boolean): BackgroundScript[] {
  const within = (from: number, to: number) => from + Math.floor(random() * (to - from + 1));
  const tool = () => BACKGROUND_TOOLS[within(0, BACKGROUND_TOOLS.length - 1)] ?? "pay";
  return Array.from({ length: isLarge ? LARGE : within(3, 10) }, (_, index) => ({
    key: `${name}m${index}`,
    calls: isLarge ? [] : Array.from({ length: within(0, 3) }, tool),
    ms: within(100, 4_000),
  }));
}
