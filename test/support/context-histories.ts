/** Random valid histories with all kinds of content, for the formats of all providers. */
import fc from "fast-check";
import type { ContextMessage, ContextPart, NativePart, ToolCall } from "../../src/model/messages.ts";
import type { ModelProfile } from "../../src/model/profile.ts";
import type { Facts } from "../../src/shared/json.ts";
import { jsonTexts, memberNames } from "./json-values.ts";

/** Provider-specific content of the histories. */
export interface HistoryKind {
  /** Media that the provider accepts; absent by default. */
  media?: fc.Arbitrary<ContextPart>;
  /** Blocks in the provider's own format; replies have no native parts by default. */
  block?: fc.Arbitrary<Facts>;
  /** Members that this provider may have beside a text, and beside a call. */
  textExtra?: fc.Arbitrary<Facts>;
  callExtra?: fc.Arbitrary<Facts>;
}

/** Occurs in every native part of another provider or model, and must never be sent. */
export const FOREIGN = "words of another provider";

/** One pixel. */
const PNG =
  "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg==";

/** An image by address, by `data:` URL or by value. */
export const images: fc.Arbitrary<ContextPart> = fc.oneof(
  fc.webPath().map((path): ContextPart => {
    return { type: "image", source: { url: `https://media.example${path}/a.png` } };
  }),
  fc.constant<ContextPart>({ type: "image", source: { url: `data:image/png;base64,${PNG}` } }),
  fc.constant<ContextPart>({ type: "image", source: { base64: PNG }, mediaType: "image/png" }),
);

/** A document as base64. */
export const documents: fc.Arbitrary<ContextPart> = fc
  .tuple(fc.base64String({ minLength: 4, maxLength: 40 }), fc.option(fc.constantFrom("a.pdf", "b c.pdf")))
  .map(([base64, name]): ContextPart => {
    const named = name === null ? {} : { name };
    return { type: "file", source: { base64 }, mediaType: "application/pdf", ...named };
  });

const text = fc.oneof(
  { arbitrary: fc.string({ unit: "grapheme", maxLength: 30 }), weight: 4 },
  { arbitrary: fc.constantFrom("", " ", "\n\t"), weight: 1 },
);

/** A value after a round trip through JSON text, which has no negative zero. */
const json = jsonTexts({ maxDepth: 2 }).map((value): object => ({
  value: JSON.parse(JSON.stringify(JSON.parse(value))),
}));

const call: fc.Arbitrary<ToolCall> = fc.record({
  id: fc.oneof(
    fc.constantFrom("call_0", "call_1", "toolu_01", "a.b:c", "Zürich", "x".repeat(80), `${"x".repeat(80)}y`),
    fc.string({ minLength: 1, maxLength: 70 }),
  ),
  // The AI SDK looks names up in a plain object, which has a `__proto__`.
  name: fc
    .oneof(fc.constantFrom("notes", "memory.write", "9lives", "größe"), fc.string({ maxLength: 150 }))
    .filter((name) => name !== "__proto__"),
  arguments: fc.dictionary(memberNames({ maxLength: 6 }), json, { maxKeys: 3 }),
});

const calls = fc.uniqueArray(call, { maxLength: 4, selector: ({ id }) => id });

const speaker = fc.option(fc.constantFrom("ada", "José <admin>", "the reviewer"), { nil: undefined });

function named(name: string | undefined): Pick<ContextMessage, "name"> {
  return name === undefined ? {} : { name };
}

const instruction = fc
  .tuple(text, speaker)
  .map(([content, name]): ContextMessage[] => [{ role: "system", content, ...named(name) }]);

function userMessage({ media }: HistoryKind): fc.Arbitrary<ContextMessage[]> {
  const plain = fc.tuple(text, speaker).map(([content, name]): ContextMessage[] => {
    return [{ role: "user", content, ...named(name) }];
  });
  if (media === undefined) return plain;
  const textPart = text.map((value): ContextPart => ({ type: "text", text: value }));
  const withMedia = fc
    .tuple(fc.array(fc.oneof(textPart, media), { minLength: 1, maxLength: 4 }), speaker)
    .map(([parts, name]): ContextMessage[] => {
      const content = parts.map((part) => (part.type === "text" ? part.text : "")).join("");
      return [{ role: "user", content, parts, ...named(name) }];
    });
  return fc.oneof(plain, withMedia);
}

/** A reply without a provider and without results. */
const plainReply = fc.tuple(text, calls, speaker).map(([content, toolCalls, name]): ContextMessage => {
  return { role: "assistant", content, ...named(name), ...(toolCalls.length === 0 ? {} : { toolCalls }) };
});

/** A reply with native parts that cover its text and calls. */
function nativeReply(
  profile: ModelProfile,
  kind: HistoryKind,
  block: fc.Arbitrary<Facts>,
): fc.Arbitrary<ContextMessage> {
  const said = fc.record({ text, extra: optional(kind.textExtra) });
  const called = fc.record({ call, extra: optional(kind.callExtra) });
  const own = fc.record({ block });
  const pieces = fc.uniqueArray(fc.oneof(said, called, own), {
    minLength: 1,
    maxLength: 6,
    selector: (piece) => ("call" in piece ? piece.call.id : piece),
  });
  return pieces.map((given): ContextMessage => {
    const toolCalls: ToolCall[] = [];
    let content = "";
    const parts = given.map((piece): NativePart => {
      if ("block" in piece) return { type: "block", value: piece.block };
      const extra = piece.extra === undefined ? {} : { extra: piece.extra };
      if ("call" in piece) return { type: "tool-call", index: toolCalls.push(piece.call) - 1, ...extra };
      content += piece.text;
      return { type: "text", length: piece.text.length, ...extra };
    });
    const calls = toolCalls.length === 0 ? {} : { toolCalls };
    return { role: "assistant", content, ...calls, native: { ...owner(profile), parts } };
  });
}

function optional(extra: fc.Arbitrary<Facts> = fc.constant({})): fc.Arbitrary<Facts | undefined> {
  return fc.option(extra, { nil: undefined });
}

function owner({ provider, modelId }: ModelProfile): { provider: string; modelId: string } {
  return { provider, modelId };
}

/** A reply with native parts that must not be sent: they are of another provider or model, or cover another text. */
function foreignReply(profile: ModelProfile): fc.Arbitrary<ContextMessage> {
  const own = owner(profile);
  const of = fc.constantFrom({ ...own, provider: "elsewhere" }, { ...own, modelId: "another-model" }, own);
  return fc.tuple(plainReply, of).map(([reply, whose]): ContextMessage => {
    const covered = whose === own ? reply.content.length + 1 : reply.content.length;
    const parts: NativePart[] = [
      { type: "block", value: { type: "thinking", thinking: FOREIGN } },
      { type: "text", length: covered, extra: { foreign: FOREIGN } },
      ...(reply.toolCalls ?? []).map((_call, index): NativePart => {
        return { type: "tool-call", index, extra: { foreign: FOREIGN } };
      }),
    ];
    return { ...reply, native: { ...whose, parts } };
  });
}

/** A reply, followed by one result for each of its calls, in any order. */
function withResults(reply: ContextMessage): fc.Arbitrary<ContextMessage[]> {
  const { toolCalls = [] } = reply;
  const order = fc.shuffledSubarray(toolCalls, { minLength: toolCalls.length });
  const outcome = fc.tuple(text, fc.constantFrom(undefined, true, false), fc.boolean());
  const outcomes = fc.array(outcome, { minLength: toolCalls.length, maxLength: toolCalls.length });
  return fc.tuple(order, outcomes).map(([inOrder, results]): ContextMessage[] => [
    reply,
    ...inOrder.map(({ id, name }, n): ContextMessage => {
      const [content, isSuccess, hasName] = results[n] ?? ["", undefined, false];
      const metadata = isSuccess === undefined ? {} : { metadata: { isSuccess } };
      return { role: "tool", content, toolCallId: id, ...(hasName ? { name } : {}), ...metadata };
    }),
  ]);
}

/**
 * A history in groups: a message, or a reply with the results of its calls. It may begin with any group. Flattened, it
 * is the content of a context.
 */
export function contextHistory(profile: ModelProfile, kind: HistoryKind): fc.Arbitrary<ContextMessage[][]> {
  const replies = [plainReply, foreignReply(profile)];
  if (kind.block !== undefined) replies.push(nativeReply(profile, kind, kind.block));
  const group = fc.oneof(
    { arbitrary: userMessage(kind), weight: 3 },
    { arbitrary: fc.oneof(...replies).chain(withResults), weight: 5 },
    { arbitrary: instruction, weight: 1 },
  );
  return fc.array(group, { maxLength: 9 });
}
