/** The AI SDK's own providers with any history, against a server with the rules of the real APIs. */
import { createAnthropic } from "@ai-sdk/anthropic";
import { createGoogle } from "@ai-sdk/google";
import { createOpenAI } from "@ai-sdk/openai";
import type { LanguageModelV4 } from "@ai-sdk/provider";
import fc from "fast-check";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { adapterFor } from "../../src/adapters/index.ts";
import type { ContextMessage } from "../../src/model/messages.ts";
import type { ModelProfile } from "../../src/model/profile.ts";
import type { JsonObject } from "../../src/shared/json.ts";
import { contextHistory, documents, type HistoryKind, images } from "../support/context-histories.ts";
import { context } from "../support/contexts.ts";
import { deltasOf, textOf } from "../support/gateway-calls.ts";
import { type StrictServer, startStrictServer } from "../support/strict-apis.ts";

const format = adapterFor("ai-sdk");
const PROFILE: ModelProfile = { provider: "ai-sdk", modelId: "model" };
const RUNS = { numRuns: 150 };

let server: StrictServer;

beforeAll(async () => {
  server = await startStrictServer();
});

afterAll(() => server.close());

const media = fc.oneof(images, documents);
const signature = fc.base64String({ minLength: 4, maxLength: 12 });
const options = (name: string, member: string) =>
  signature.map((value) => ({ providerOptions: { [name]: { [member]: value } } }));
const thought = (signed: fc.Arbitrary<object>) =>
  fc.tuple(fc.string({ minLength: 1, maxLength: 12 }), signed).map(([said, signs]) => ({
    type: "reasoning",
    text: said,
    ...signs,
  }));

interface Provider {
  name: string;
  model: () => LanguageModelV4;
  kind: HistoryKind;
}

const openai = () => createOpenAI({ baseURL: `${server.url}/v1`, apiKey: "test-key" });
const google = (modelId: string) => () =>
  createGoogle({ baseURL: `${server.url}/v1beta`, apiKey: "test-key" })(modelId);
const signedByGoogle = options("google", "thoughtSignature");
const googleKind: HistoryKind = {
  media,
  block: thought(signedByGoogle),
  textExtra: signedByGoogle,
  callExtra: signedByGoogle,
};

const PROVIDERS: Provider[] = [
  {
    name: "Anthropic",
    model: () => createAnthropic({ baseURL: `${server.url}/v1`, apiKey: "test-key" })("claude-sonnet-4-5"),
    kind: {
      media,
      block: thought(options("anthropic", "signature")),
      textExtra: options("anthropic", "mark"),
    },
  },
  { name: "Google, second generation", model: google("gemini-2.5-flash"), kind: googleKind },
  { name: "Google, third generation", model: google("gemini-3-pro-preview"), kind: googleKind },
  { name: "OpenAI, Chat Completions", model: () => openai().chat("gpt-4.1-mini"), kind: { media } },
  { name: "OpenAI, Responses", model: () => openai().responses("gpt-4.1-mini"), kind: { media } },
];

/** The messages that the output repair of a conversation sends, after any reply. */
const repair: fc.Arbitrary<ContextMessage[]> = fc
  .tuple(fc.constantFrom("", " ", "{", '{"n": "x"}'), fc.string({ minLength: 1, maxLength: 10 }))
  .map(([answer, problem]) => [
    ...(answer === "" ? [] : [{ role: "assistant" as const, content: answer }]),
    { role: "system" as const, content: `Your answer was not accepted: ${problem}.` },
  ]);

/** The moves of a turn: rounds of parallel calls with their results, and repairs. */
function turnMoves(kind: HistoryKind): fc.Arbitrary<ContextMessage[]> {
  const rounds = contextHistory(PROFILE, kind).map((groups) =>
    groups.filter(([reply]) => reply?.role === "assistant" && reply.toolCalls !== undefined).flat(),
  );
  return fc
    .tuple(rounds, fc.array(repair, { maxLength: 2 }))
    .map(([moves, repairs]) => [...moves, ...repairs.flat()]);
}

async function expectAccepted(model: LanguageModelV4, body: JsonObject): Promise<void> {
  const deltas = await deltasOf({ profile: PROFILE, body, ports: { languageModel: () => model } });
  const last = deltas.at(-1);
  expect(last?.type === "error" ? last.error.message : "").toBe("");
  expect(textOf(deltas)).toBe("ok");
}

describe.each(PROVIDERS)("$name through the AI SDK", ({ model, kind }) => {
  test("AISDK-4 accepts any history, with parallel results, media and system messages anywhere", async () => {
    await fc.assert(
      fc.asyncProperty(
        contextHistory(PROFILE, kind),
        fc.array(fc.string(), { maxLength: 2 }),
        async (groups, systemInstructions) => {
          const messages = groups.flat();
          if (messages.length === 0) return;
          const body = format.buildRequest(PROFILE, context({ systemInstructions, messages }));
          await expectAccepted(model(), body);
        },
      ),
      RUNS,
    );
  });

  test("AISDK-4 accepts any continued turn, with its repairs", async () => {
    await fc.assert(
      fc.asyncProperty(contextHistory(PROFILE, kind), turnMoves(kind), async (groups, moves) => {
        const messages: ContextMessage[] = [...groups.flat(), { role: "user", content: "Go on." }];
        const first = format.buildRequest(PROFILE, context({ systemInstructions: ["Be brief."], messages }));
        const body = format.extend(PROFILE, first, moves);
        if (moves.at(-1)?.role !== "assistant") await expectAccepted(model(), body);
      }),
      RUNS,
    );
  });
});
