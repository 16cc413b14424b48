/** Other forms of input, and ids of tools. */
import { describe, expect, test } from "vitest";
import { z } from "zod";
import { defineLibrary, definePersona, defineTool } from "../../src/library/define/define.ts";
import { DeployedCode } from "../../src/library/registry/deployed-code.ts";
import { Registry } from "../../src/library/registry/registry.ts";
import { parsePersonaSource, resolveChain } from "../../src/library/registry/resolve.ts";
import { withToolForms } from "../../src/library/tools/tool-forms.ts";
import { retrySchema } from "../../src/library/tools/tool-schema.ts";
import { participantSchema } from "../../src/protocol/participants.ts";
import { validate } from "../../src/shared/validation.ts";

const tool = (name: string, id?: string) =>
  defineTool({
    name,
    description: "A tool.",
    input: z.object({}),
    execute: () => name,
    ...(id === undefined ? {} : { id }),
  });
const identity = { systemPrompt: "You help." };
const refusal = (path: string, message: RegExp) =>
  expect.objectContaining({
    code: "INVALID_INPUT",
    options: { errors: [{ path, message: expect.stringMatching(message) }] },
  });

describe("a tool's target and timeout", () => {
  const schema = withToolForms(
    z.strictObject({
      name: z.string(),
      target: z.exactOptional(
        z.union([
          z.strictObject({ task: z.string() }),
          z.strictObject({ workflow: z.string() }),
          z.strictObject({ agent: z.string(), mode: z.exactOptional(z.string()) }),
        ]),
      ),
      timeoutMs: z.exactOptional(z.int()),
      retry: z.exactOptional(retrySchema),
    }),
  );
  const read = (fields: object) => validate(schema, { name: "t", ...fields });

  test.each([
    { target: { task: "a/b" } },
    { task: "a/b" },
    { taskId: "a/b" },
    { targetType: "task", targetId: "a/b" },
  ])("TOOLFORM-1 %j is the same target", (fields) => {
    expect(read(fields)).toEqual({ name: "t", target: { task: "a/b" } });
  });

  test.each([
    { target: { agent: "a", mode: "delegate" } },
    { agentId: "a", invocationMode: "delegate" },
    { targetType: "agent", targetId: "a", invocationMode: "delegate" },
  ])("TOOLFORM-1 A6 %j is the same target", (fields) => {
    expect(read(fields)).toEqual({ name: "t", target: { agent: "a", mode: "delegate" } });
  });

  test.each([
    { target: { workflow: "a/b" } },
    { workflowId: "a/b" },
    { targetType: "workflow", targetId: "a/b" },
  ])("TOOLFORM-1 %j is the same workflow", (fields) => {
    expect(read(fields)).toEqual({ name: "t", target: { workflow: "a/b" } });
  });

  test.each([
    [{ taskId: "a", workflowId: "b" }, "", /more than one target: `taskId` and `workflowId`/],
    [{ target: { task: "a" }, targetType: "task", targetId: "a" }, "", /`target` and `targetId`/],
    [{ targetId: "a", agentId: "b" }, "", /`targetId` and `agentId`/],
    [{ task: "a", taskId: "a" }, "", /`task` and `taskId`/],
    [{ targetType: "robot", targetId: "a" }, "/targetType", /Only tasks/],
    [{ task: "a", invocationMode: "delegate" }, "/invocationMode", /Belongs to/],
    [{ targetId: "a" }, "/targetType", /Only tasks/],
    [{ targetType: "task" }, "/targetId", /required/],
    [{ targetType: "task", task: "a" }, "/targetType", /Remove it/],
    [{ taskId: 7 }, "/target/task", /string/],
  ])("TOOLFORM-1 refuses %j", (fields, path, message) => {
    expect(() => read(fields)).toThrow(refusal(path, message));
  });

  test.each([
    [{ timeoutMs: 5 }, { timeoutMs: 5 }],
    [{ retry: { timeoutMs: 5 } }, { timeoutMs: 5 }],
    [
      { retry: { maxAttempts: 3, backoffMs: 1_000, timeoutMs: 5 } },
      { timeoutMs: 5, retry: { maxAttempts: 3, backoffMs: 1_000 } },
    ],
    [{ retry: {} }, {}],
  ])("TOOLFORM-2 reads %j", (fields, expected) => {
    expect(read(fields)).toEqual({ name: "t", ...expected });
  });

  test.each([
    [{ timeoutMs: 5, retry: { timeoutMs: 5 } }, "/retry/timeoutMs", /two timeouts/],
    [{ retry: { maxAttempts: 11 } }, "/retry/maxAttempts", /10/],
    [{ retry: { maxAttempts: 1.5 } }, "/retry/maxAttempts", /int/],
    [{ retry: { backoffMs: -1 } }, "/retry/backoffMs", /0/],
    [{ retry: { more: 3 } }, "/retry/more", /Unknown/],
    [{ retry: 3 }, "/retry", /object/],
    [{ retry: null }, "/retry", /object/],
    [{ retry: "5 s" }, "/retry", /object/],
    [{ retry: { timeoutMs: "5" } }, "/timeoutMs", /number/],
  ])("TOOLFORM-2 refuses %j", (fields, path, message) => {
    expect(() => read(fields)).toThrow(refusal(path, message));
  });

  test("TOOLFORM-2 defineTool takes `retry.timeoutMs`, and refuses two timeouts", () => {
    const options = { name: "t", description: "A tool.", input: z.object({}), execute: () => null };
    expect(defineTool({ ...options, retry: { timeoutMs: 5 } }).definition.timeoutMs).toBe(5);
    expect(() => defineTool({ ...options, timeoutMs: 5, retry: { timeoutMs: 5 } })).toThrow(
      /"t".*\/retry\/timeoutMs.*two timeouts/,
    );
  });

  test.each(["target", "targetId", "task", "taskId", "workflowId", "agentId"])(
    "TOOLFORM-1 defineTool refuses `%s`, because the tool has code",
    (field) => {
      const options = { name: "t", description: "A tool.", input: z.object({}), execute: () => null };
      expect(() => defineTool({ ...options, [field]: "x" })).toThrow(
        new RegExp(`"t" has \`${field}\`.*execute`),
      );
    },
  );
});

describe("ids of tools", () => {
  test.each(["place_order", "PlaceOrder", "a", "9-lives_"])(
    "TOOLID-1 %s keeps its name as its id",
    async (name) => {
      const seller = definePersona("Seller_1", { identity, tools: { toolIds: [name] } });
      const library = defineLibrary("My_Shop", { tools: [tool(name)], personas: [seller] });
      const chain = await resolveChain(new Registry(new DeployedCode([library])), "My_Shop/Seller_1", {
        provider: "offline",
        modelId: "offline-1",
      });
      expect(chain.tools).toMatchObject([{ library: "My_Shop", id: name, definition: { name } }]);
    },
  );

  test("an unknown tool gets an error with the known tools", () => {
    const persona = definePersona("p", { identity, tools: { toolIds: ["place_orders"] } });
    expect(() => defineLibrary("shop", { personas: [persona], tools: [tool("place_order")] })).toThrow(
      /"place_orders".*It has: place_order\./,
    );
  });
});

describe("references to personas", () => {
  test.each([
    [
      { libraryId: "a/B_c", version: "12" },
      { library: "a", id: "B_c", version: 12 },
    ],
    [
      { libraryId: "a", id: "b", version: "1" },
      { library: "a", id: "b", version: 1 },
    ],
    [
      { libraryId: "a/b", version: 3 },
      { library: "a", id: "b", version: 3 },
    ],
    [{ libraryId: "a/b" }, { library: "a", id: "b" }],
  ])("PERSONAFORM-1 reads %j", (source, expected) => {
    expect(parsePersonaSource(source)).toEqual(expected);
  });

  test.each([
    [5, "/p", /a persona, or a reference as in "library\/id"/],
    [{ libraryId: "a" }, "/p/libraryId", /library\/id/],
    [{ libraryId: "a/b@2" }, "/p/libraryId", /library\/id/],
    [{ libraryId: "a/b", id: "c" }, "/p/libraryId", /library\/id/],
    [{ libraryId: 7 }, "/p/libraryId", /string/],
    [{ libraryId: "a/b", version: "1.0.0" }, "/p/version", /integer from 1/],
    [{ libraryId: "a/b", version: "0" }, "/p/version", /integer from 1/],
    [{ libraryId: "a/b", library: "a" }, "/p/library", /Unknown/],
  ])("PERSONAFORM-1 refuses %j", (source, path, message) => {
    expect(() => parsePersonaSource(source, "/p")).toThrow(refusal(path, message));
  });

  test.each([
    [{ identity: { ...identity, model: "m" } }, "/identity/model", /modelProfileId/],
    [{ identity, memory: { storeSchema: {} } }, "/memory/storeSchema", /any text/],
  ])("PERSONAFORM-2 refuses %j, and names the correct form", (source, path, message) => {
    expect(() => parsePersonaSource(source)).toThrow(refusal(path, message));
    // SAFETY: what an author without types may write.
    expect(() => definePersona("p", source as never)).toThrow(refusal(path, message));
  });
});

describe("participants", () => {
  test.each([
    [
      { type: "user", userId: "ann" },
      { type: "user", id: "ann" },
    ],
    [
      { type: "agent", agentId: "guide" },
      { type: "agent", id: "guide" },
    ],
    [
      { type: "user", id: "ann" },
      { type: "user", id: "ann" },
    ],
  ])("PARTY-1 reads %j", (given, expected) => {
    expect(validate(participantSchema, given)).toEqual(expected);
  });

  test.each([
    { type: "user", agentId: "guide" },
    { type: "agent", userId: "ann" },
    { type: "user", id: "ann", userId: "ann" },
    { type: "agent", agentId: "guide", userId: "ann" },
    { type: "user", userId: "" },
    { type: "agent", agentId: "Guide" },
    { userId: "ann" },
    { type: "user" },
    "ann",
  ])("PARTY-1 refuses %j", (given) => {
    expect(() => validate(participantSchema, given)).toThrow(
      expect.objectContaining({ code: "INVALID_INPUT" }),
    );
  });
});
