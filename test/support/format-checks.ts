/** Invariants of the requests of every format. */
import fc from "fast-check";
import { expect } from "vitest";
import { nativeParts } from "../../src/adapters/formats/common/native.ts";
import type { ModelContext } from "../../src/model/context.ts";
import type { FormatAdapter } from "../../src/model/format-adapter.ts";
import type { ContextMessage, ContextPart } from "../../src/model/messages.ts";
import type { ModelProfile } from "../../src/model/profile.ts";
import type { Facts, JsonObject } from "../../src/shared/json.ts";
import { contextHistory, FOREIGN, type HistoryKind } from "./context-histories.ts";
import { readRequest, type SentItem, type SentMessage } from "./request-readers.ts";

export interface FormatChecks {
  format: FormatAdapter;
  profile: ModelProfile;
  kind: HistoryKind;
  /** The key of the messages in a request. */
  key: string;
  /** Patterns of the ids and the names of calls. */
  id: RegExp;
  name: RegExp;
  /** Converts a speaker's name; unchanged by default. */
  speaker?: (name: string) => string;
  /** Set if the first message must be a user's, and roles must alternate. */
  alternates: boolean;
}

const RUNS = { numRuns: 150 };

/** For any history, the content is complete, calls have their results, and equal contexts give equal bytes. */
export function checkRequests(checks: FormatChecks): void {
  fc.assert(
    fc.property(
      contextHistory(checks.profile, checks.kind),
      fc.array(fc.string(), { maxLength: 2 }),
      (groups, instructions) => {
        const messages = groups.flat();
        const body = build(checks, messages, instructions);
        expect(JSON.parse(JSON.stringify(body))).toEqual(body);
        expect(JSON.stringify(build(checks, structuredClone(messages), instructions))).toBe(
          JSON.stringify(body),
        );
        checkSent(checks, messages, instructions, body);
        if (checks.alternates) checkAlternation(read(checks, body));
      },
    ),
    RUNS,
  );
}

/** For any cut between two groups of a history, the sent part stays byte for byte, and the rest is complete. */
export function checkExtension(checks: FormatChecks): void {
  fc.assert(
    fc.property(contextHistory(checks.profile, checks.kind), fc.nat(), (groups, at) => {
      const cut = at % (groups.length + 1);
      const first = build(checks, groups.slice(0, cut).flat(), ["Be brief."]);
      const before = JSON.stringify(first);
      const later = groups.slice(cut).flat();
      const extended = checks.format.extend(checks.profile, first, later);
      expect(JSON.stringify(first)).toBe(before);
      const sent = JSON.stringify(first[checks.key]);
      expect(JSON.stringify(extended[checks.key]).startsWith(sent.slice(0, -1))).toBe(true);
      expect(JSON.stringify({ ...extended, [checks.key]: first[checks.key] })).toBe(before);
      expect(JSON.stringify(checks.format.extend(checks.profile, first, structuredClone(later)))).toBe(
        JSON.stringify(extended),
      );
      checkSent(checks, groups.flat(), ["Be brief."], extended);
      // If turns alternate, a sent turn is not merged with its neighbour. If the first request has no message to send,
      // the adapter adds a message in the name of the user.
      const isOpened = [groups.slice(0, cut), groups].some((part) => part.flat().every(isSilent));
      if (!checks.alternates && !isOpened)
        expect(extended).toEqual(build(checks, groups.flat(), ["Be brief."]));
    }),
    RUNS,
  );
}

function read({ profile }: FormatChecks, body: JsonObject): SentMessage[] {
  return readRequest(profile.provider, body);
}

function build(checks: FormatChecks, messages: ContextMessage[], systemInstructions: string[]): JsonObject {
  const context: ModelContext = { systemInstructions, messages, tools: [], toolChoice: "auto" };
  return checks.format.buildRequest(checks.profile, context);
}

function checkSent(
  checks: FormatChecks,
  messages: readonly ContextMessage[],
  instructions: readonly string[],
  body: JsonObject,
): void {
  expect(JSON.stringify(body)).not.toContain(FOREIGN);
  const sent = read(checks, body);
  const items = sent.flatMap((message) => message.items);
  checkInOrder(items, [
    ...instructions.map((text): Wanted => ({ type: "text", text })),
    ...messages.flatMap((message) => wantedOf(checks, message)),
  ]);
  const asked = messages.flatMap(({ toolCalls = [] }) => toolCalls);
  const given = items.filter((item) => item.type === "call");
  // Compared as text, which also shows members such as `__proto__`.
  expect(JSON.stringify(given.map((item) => item.arguments))).toBe(
    JSON.stringify(asked.map((call) => call.arguments)),
  );
  for (const { id, name } of given) {
    expect(id).toMatch(checks.id);
    expect(name).toMatch(checks.name);
  }
  checkResults(messages, sent);
}

type Wanted =
  | { type: "text"; text: string; extra?: Facts }
  | { type: "media"; source: string }
  | { type: "call"; extra?: Facts }
  | { type: "block"; value: Facts };

function wantedOf(checks: FormatChecks, message: ContextMessage): Wanted[] {
  const { role, content, parts, name, toolCalls = [] } = message;
  if (role === "tool") return [];
  const own = nativeParts(message, checks.profile);
  if (own !== undefined)
    return own.map((part) => (part.type === "tool-call" ? { type: "call", extra: part.extra } : part));
  return [
    ...(name === undefined || isSilent(message) ? [] : [textOf((checks.speaker ?? String)(name))]),
    ...(parts ?? [{ type: "text" as const, text: content }]).map(wantedPart),
    ...toolCalls.map((): Wanted => ({ type: "call" })),
  ];
}

/** A message without content is sent without its speaker. */
function isSilent({ content, parts = [], toolCalls = [] }: ContextMessage): boolean {
  return isBlank(content) && toolCalls.length === 0 && parts.every(({ type }) => type === "text");
}

function textOf(text: string): Wanted {
  return { type: "text", text };
}

function wantedPart(part: ContextPart): Wanted {
  if (part.type === "text") return textOf(part.text);
  const { source } = part;
  const place = "base64" in source ? source.base64 : source.url.replace(/^data:[^,]*;base64,/, "");
  return { type: "media", source: place };
}

function isBlank(text: string): boolean {
  return text.trim() === "";
}

/** Finds the wanted items in order. Blank texts may be left out. Texts may be concatenated. */
function checkInOrder(items: readonly SentItem[], wanted: readonly Wanted[]): void {
  let at = 0;
  let offset = 0;
  for (const want of wanted) {
    if (want.type === "text" && isBlank(want.text)) continue;
    while (at < items.length) {
      const item = items[at];
      const found = item === undefined ? -1 : positionIn(item, want, offset);
      if (found >= 0) {
        offset = found;
        break;
      }
      at++;
      offset = 0;
    }
    expect(at < items.length, `lost: ${JSON.stringify(want)} in ${JSON.stringify(items)}`).toBe(true);
    if (want.type !== "text") {
      at++;
      offset = 0;
    }
  }
}

/** Returns the end of the wanted thing in the item, searched from an offset on; -1 if it is not there. */
function positionIn(item: SentItem, want: Wanted, offset: number): number {
  if (item.type === "text" && want.type === "text") {
    const start = item.text.indexOf(want.text, offset);
    return start < 0 || !hasExtra(item.extra, want.extra) ? -1 : start + want.text.length;
  }
  if (item.type === "media" && want.type === "media") return item.source.includes(want.source) ? 0 : -1;
  if (item.type === "call" && want.type === "call") return hasExtra(item.extra, want.extra) ? 0 : -1;
  if (item.type !== "block" || want.type !== "block") return -1;
  return JSON.stringify(item.value) === JSON.stringify(want.value) ? 0 : -1;
}

function hasExtra(given: JsonObject | undefined, wanted: Facts | undefined): boolean {
  return wanted === undefined || JSON.stringify({ ...given, ...wanted }) === JSON.stringify(given ?? {});
}

/** Each call has exactly its own result, in the run of results directly after its reply. */
function checkResults(messages: readonly ContextMessage[], sent: readonly SentMessage[]): void {
  const items = sent.flatMap((message) => message.items.map((item) => ({ ...item, role: message.role })));
  const replies = messages.flatMap((message, index) => {
    const { toolCalls = [] } = message;
    if (toolCalls.length === 0) return [];
    return [{ toolCalls, results: messages.slice(index + 1, index + 1 + toolCalls.length) }];
  });
  let at = 0;
  for (const { toolCalls, results } of replies) {
    const ids: string[] = [];
    while (ids.length < toolCalls.length) {
      const item = items[at++];
      expect(item).toBeDefined();
      if (item?.type === "call") ids.push(item.id);
    }
    expect(new Set(ids).size).toBe(ids.length);
    // Items between the last call and the first result belong to the reply.
    while (items[at]?.role === "assistant") at++;
    const behind = items.slice(at, at + toolCalls.length);
    at += toolCalls.length;
    expect(behind.map((item) => (item.type === "result" ? item.callId : item.type)).sort()).toEqual(
      [...ids].sort(),
    );
    for (const item of behind) {
      if (item.type !== "result") continue;
      const call = toolCalls[ids.indexOf(item.callId)];
      const result = results.find(({ toolCallId }) => toolCallId === call?.id);
      if (!isBlank(result?.content ?? "")) expect(item.text).toContain(result?.content);
      if (item.failed !== undefined) expect(item.failed).toBe(result?.metadata?.isSuccess === false);
    }
  }
  expect(items.filter(({ type }) => type === "result")).toHaveLength(
    replies.flatMap(({ results }) => results).length,
  );
}

function checkAlternation(sent: readonly SentMessage[]): void {
  const roles = sent.map(({ role }) => role).filter((role) => role !== "system");
  roles.forEach((role, index) => {
    expect(role).toBe(index % 2 === 0 ? "user" : "assistant");
  });
}
