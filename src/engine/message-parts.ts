/** The parts that a message's content may be made of. */
import { z } from "zod";
import type { ContextPart, NativeReply } from "../model/messages.ts";
import type { Facts } from "../shared/json.ts";

export type MessageMedia = Extract<ContextPart, { type: "image" | "file" }>;

export type MessagePart =
  | { type: "text"; text: string }
  | MessageMedia
  /** A model's request to run a tool; `id` is unique within its message. */
  | { type: "tool-call"; id: string; name: string; arguments: Facts }
  /** What became of the call with the same `id`: a text, or anything that JSON can say. */
  | { type: "tool-result"; id: string; name: string; result?: unknown; isError?: boolean }
  /** Facts for whoever reads the message; sent to no model. */
  | { type: "metadata"; data: Facts };

const facts = z.record(
  z.string(),
  z.custom<Facts[string]>((value) => value !== undefined),
);

const mediaFacts = { mediaType: z.string().optional(), name: z.string().optional() };

const media = z.object({
  type: z.enum(["image", "file"]),
  source: z.union([z.strictObject({ url: z.string() }), z.strictObject({ base64: z.string() })]),
  ...mediaFacts,
});

/** Media as clients of conversations send them: the address beside the type. */
const addressedMedia = z
  .object({ type: z.enum(["image", "file"]), url: z.string(), ...mediaFacts })
  .transform(({ url, ...rest }) => ({ ...rest, source: { url } }));

const part = z.union([
  z.object({ type: z.literal("text"), text: z.string() }),
  media,
  addressedMedia,
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

/** Content as parts: a text is one; what is neither text nor parts is its JSON text, so that nothing is lost. */
export function partsOf(content: unknown): MessagePart[] {
  if (typeof content === "string") return [{ type: "text", text: content }];
  const parsed = parts.safeParse(content);
  // SAFETY: the schema gives exactly these shapes; its optional keys are absent where they were absent.
  if (parsed.success) return parsed.data as MessagePart[];
  return [{ type: "text", text: JSON.stringify(content) ?? "" }];
}

/** A value as a part, if it is one. */
export function asPart(value: unknown): MessagePart | undefined {
  const parsed = part.safeParse(value);
  // SAFETY: as above.
  return parsed.success ? (parsed.data as MessagePart) : undefined;
}

/** What a reply was made of in its provider's own words, where a message's metadata has it. */
export function nativeReplyOf(value: unknown): NativeReply | undefined {
  const parsed = nativeReply.safeParse(value);
  // SAFETY: as above.
  return parsed.success ? (parsed.data as NativeReply) : undefined;
}
