/** The gateway's transports without HTTP: the AI binding, and the offline model. */
import { describe, expect, test } from "vitest";
import type { GatewayPorts } from "../../src/adapters/index.ts";
import { type AiBinding, adapterFor, collectReply } from "../../src/adapters/index.ts";
import { type Call, clock, deltasOf, errorOf, stream, textOf } from "../support/gateway-calls.ts";
import { newGate } from "../support/openai-server.ts";

describe("workers-ai", () => {
  const bytes = (text: string) => new Blob([text]).stream();
  const run = (answer: AiBinding["run"], signal?: AbortSignal) => ({
    profile: { provider: "workers-ai", modelId: "@cf/test" } as const,
    body: { messages: [], stream: true },
    ports: { ai: { run: answer } },
    ...(signal === undefined ? {} : { signal }),
  });

  test("runs the model with the request and reads its stream", async () => {
    const seen: unknown[] = [];
    const deltas = await deltasOf(
      run(async (model, input) => {
        seen.push(model, input);
        return bytes('data: {"response":"Hi"}\n\ndata: {"response":" there"}\n\ndata: [DONE]\n\n');
      }),
    );
    expect(seen).toEqual(["@cf/test", { messages: [], stream: true }]);
    expect(textOf(deltas)).toBe("Hi there");
    expect(deltas.at(-1)).toEqual({ type: "finish", reason: "stop" });
  });

  test.each([
    [{ response: "Hi", usage: { prompt_tokens: 1, completion_tokens: 1, total_tokens: 2 } }],
    [{ choices: [{ message: { content: "Hi" } }] }],
  ])("a plain object is a complete reply: %j", async (answer) => {
    expect(await collectReply("workers-ai", stream(run(async () => answer)))).toMatchObject({
      ok: true,
      reply: { text: "Hi", finishReason: "stop" },
    });
  });

  test("a stream that ends early, and an invalid answer", async () => {
    expect(await errorOf(run(async () => bytes('data: {"response":"Hi"}\n\n')))).toMatchObject({
      category: "transient",
    });
    for (const answer of [undefined, null, "text", {}]) {
      expect(await errorOf(run(async () => answer))).toMatchObject({ category: "transient" });
    }
  });

  test.each([
    ["5007: No such model @cf/test or task", "not_found"],
    ["3036: You have used up your daily free allocation", "quota"],
    ["3040: Capacity temporarily exceeded, please try again.", "rate_limit"],
    ["AiError: 5006: required properties are missing", "validation"],
    ["error code: 1031", "transient"],
  ])("a failure %s", async (message, category) => {
    const fails = async () => {
      throw new Error(message);
    };
    const error = await errorOf(run(fails));
    expect(error).toMatchObject({ category, provider: "workers-ai" });
    expect(error.message).toContain(message);
  });

  test("without the binding, the error names the binding to add", async () => {
    const error = await errorOf({ profile: { provider: "workers-ai", modelId: "@cf/test" } });
    expect(error.category).toBe("validation");
    expect(error.message).toContain('"ai"');
  });

  test("a run that hangs is canceled, and its late stream is given back", async () => {
    const controller = new AbortController();
    const late = newGate();
    const given = newGate();
    const answer = async () => {
      await late.wait;
      return new ReadableStream({ cancel: given.open });
    };
    const running = errorOf(run(answer, controller.signal));
    controller.abort();
    expect(await running).toMatchObject({ category: "canceled" });
    late.open();
    await given.wait;
  });

  test("a stream that hangs is canceled", async () => {
    const controller = new AbortController();
    const given = newGate();
    const hangs = new ReadableStream({ cancel: given.open });
    const running = errorOf(run(async () => hangs, controller.signal));
    setImmediate(() => controller.abort());
    expect(await running).toMatchObject({ category: "canceled" });
    await given.wait;
  });
});

describe("offline", () => {
  const offline = (text: string): Call => {
    const profile = { provider: "offline", modelId: "offline-1" } as const;
    const context = {
      systemInstructions: [],
      messages: [{ role: "user", content: text } as const],
      tools: [],
      toolChoice: "auto",
    } as const;
    return { profile, body: adapterFor("offline").buildRequest(profile, context) };
  };

  test("answers without any network", async () => {
    const refuse = async () => {
      throw new Error("no network");
    };
    const deltas = await deltasOf({ ...offline("!say hello there"), ports: { fetch: refuse } });
    expect(textOf(deltas)).toBe("hello there");
    expect(deltas.at(-1)).toEqual({ type: "finish", reason: "stop" });
  });

  test("paces a slow answer by the clock, and can be canceled in a pause", async () => {
    const slept: number[] = [];
    const counting: GatewayPorts["clock"] = { ...clock, sleep: async (ms) => void slept.push(ms) };
    await deltasOf({ ...offline("!slow 5 200"), ports: { clock: counting } });
    expect(slept).toEqual([200, 200, 200, 200, 200]);

    const controller = new AbortController();
    const stuck: GatewayPorts["clock"] = {
      ...clock,
      sleep: (_ms, signal) =>
        new Promise((_resolve, reject) => {
          signal?.addEventListener("abort", () => reject(signal.reason));
          queueMicrotask(() => controller.abort());
        }),
    };
    const error = await errorOf({
      ...offline("!slow 5"),
      ports: { clock: stuck },
      signal: controller.signal,
    });
    expect(error).toMatchObject({ category: "canceled", provider: "offline" });
  });
});
