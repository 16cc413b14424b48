/** Parts of a message's content. */
import { z } from "zod";
import type { ContextPart, NativeReply } from "../model/messages.ts";
import type { Facts } from "../shared/json.ts";

export type MessageMedia = Extract<ContextPart, { type: "image" | "file" }>;

/**
 * A part of a message's content.
 *
 * @example
 * const content: MessagePart[] = [
 *   { type: "text", text: "What is this?" },
 *   { type: "image", source: { url: "https://example.com/dot.png" } },
 * ];
 */
export type MessagePart =
  | { type: "text"; text: string }
  | MessageMedia
  /** A model's request to run a tool. `id` is unique within its message. */
  | { type: "tool-call"; id: string; name: string; arguments: Facts }
  /** The result of the call with this `id`: a text or any JSON. */
  | { type: "tool-result"; id: string; name: string; result?: unknown; isError?: boolean }
  /** Facts for the application. They are not sent to a model. */
  | { type: "metadata"; data: Facts };

const facts = z.record(
  z.string(),
  z.custom<Facts[string]>((value) => value !== undefined),
);

const mediaFacts = { mediaType: z.string().optional(), name: z.string().optional() };

const part = z.union([
  z.object({ type: z.literal("text"), text: z.string() }),
  z.object({
    type: z.enum(["image", "file"]),
    source: z.union([z.strictObject({ url: z.string() }), z.strictObject({ base64: z.string() })]),
    ...mediaFacts,
  }),
  // The form that clients of conversations send.
  z
    .object({ type: z.enum(["image", "file"]), url: z.string(), ...mediaFacts })
    .transform(({ url, ...rest }) => ({ ...rest, source: { url } })),
  z.object({ type: z.literal("tool-call"), id: z.string(), name: z.string(), arguments: facts }),
  z.object({
    type: z.literal("tool-result"),
    id: z.string(),
    name: z.string(),
    result: z.unknown(),
    isError: z.boolean().optional(),
  }),
  z.object({ type: z.literal("metadata"), data: facts }),
]);

const parts = z.array(part).min(1);

const nativePart = z.union([
  z.object({ type: z.literal("text"), length: z.int().min(0), extra: facts.optional() }),
  z.object({ type: z.literal("tool-call"), index: z.int().min(0), extra: facts.optional() }),
  z.object({ type: z.literal("block"), value: facts }),
]);

const nativeReply = z.object({ provider: z.string(), modelId: z.string(), parts: z.array(nativePart) });

/** Returns content as parts. Content other than a text or a list of parts becomes its JSON text. */
export function partsOf(content: unknown): MessagePart[] {
  if (typeof content === "string") return [{ type: "text", text: content }];
  return parse<MessagePart[]>(parts, content) ?? [{ type: "text", text: JSON.stringify(content) ?? "" }];
}

export function asPart(value: unknown): MessagePart | undefined {
  return parse<MessagePart>(part, value);
}

export function asNativeReply(value: unknown): NativeReply | undefined {
  return parse<NativeReply>(nativeReply, value);
}

function parse<Shape>(schema: z.ZodType, value: unknown): Shape | undefined {
  const parsed = schema.safeParse(value);
  // SAFETY: the schemas above describe these shapes; zod leaves absent optional keys absent.
  return parsed.success ? (parsed.data as Shape) : undefined;
}
