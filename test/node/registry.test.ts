/** The pure rules of the registry, and its versions on a real database of Node's. */
import { setImmediate } from "node:timers/promises";
import fc from "fast-check";
import { describe, expect, test, vi } from "vitest";
import { z } from "zod";
import { invocationOf } from "../../src/agents/conversation/effects/tool-batch.ts";
import { D1Definitions } from "../../src/d1/d1-definitions.ts";
import { D1_TIMEOUT_MS } from "../../src/d1/in-time.ts";
import {
  defineLibrary,
  defineModelProfile,
  definePersona,
  defineTool,
} from "../../src/library/define/define.ts";
import { contentHash } from "../../src/library/definitions/definition.ts";
import { strictest } from "../../src/library/definitions/effects.ts";
import { inputSchemaIssues } from "../../src/library/definitions/input-schema.ts";
import { completePersona } from "../../src/library/personas/persona.ts";
import { CODE_TENANT } from "../../src/library/registry/definition-source.ts";
import { DeployedCode } from "../../src/library/registry/deployed-code.ts";
import { Registry } from "../../src/library/registry/registry.ts";
import { resolveChain } from "../../src/library/registry/resolve.ts";
import { nodeD1 } from "../../src/ports/node/node-d1.ts";
import { NodeSqlDatabase } from "../../src/ports/node/node-sql-database.ts";
import type { Persona, ToolEffect } from "../../src/protocol/definitions.ts";
import { canonicalJson, type Json, type JsonObject } from "../../src/shared/json.ts";
import { violations } from "../../src/shared/json-schema/violations.ts";
import type { Principal } from "../../src/shared/principal.ts";
import { memberNames } from "../support/json-values.ts";
import { SteeredClock } from "../support/steered-clock.ts";

const text = fc.string({ minLength: 1, maxLength: 8 });
const personas = fc
  .record(
    {
      name: text,
      description: text,
      identity: fc.record({ systemPrompt: text, instructions: fc.array(text, { maxLength: 3 }) }),
      memory: fc.record({ recentTurnsLimit: fc.integer({ min: 1, max: 9 }) }),
    },
    { requiredKeys: ["identity"] },
  )
  .map((persona): Persona => persona);

/** The same value with its keys in another order at every level. */
function reversed(value: unknown): unknown {
  if (Array.isArray(value)) return value.map(reversed);
  if (typeof value !== "object" || value === null) return value;
  return Object.fromEntries(
    Object.entries(value)
      .map(([key, member]) => [key, reversed(member)])
      .reverse(),
  );
}

describe("content hashes", () => {
  test("HASH-1 are equal exactly if the contents are, in any order of keys", async () => {
    await fc.assert(
      fc.asyncProperty(personas, personas, async (one, other) => {
        // SAFETY: the same members in another order.
        expect(await contentHash(reversed(one) as Persona)).toBe(await contentHash(one));
        const equal = JSON.stringify(reversed(one)) === JSON.stringify(reversed(other));
        if (!equal && Object.keys(one).length === Object.keys(other).length)
          expect(await contentHash(other)).not.toBe(await contentHash(one));
      }),
      { numRuns: 100 },
    );
  });

  test("HASH-1 the canonical text follows RFC 8785, also for keys beyond ASCII and any number", () => {
    const keys = { "\u20ac": 1, "\r": 2, "\ufb33": 3, "1": 4, "\ud83d\ude00": 5, "\u0080": 6, "\u00f6": 7 };
    expect(Object.values(JSON.parse(canonicalJson(keys)))).toHaveLength(7);
    expect(canonicalJson(keys)).toBe(
      '{"\\r":2,"1":4,"\u0080":6,"\u00f6":7,"\u20ac":1,"\ud83d\ude00":5,"\ufb33":3}',
    );
    const numbers = JSON.parse("[333333333.33333329, 1E30, 4.50, 2e-3, 0.000000000000000000000000001, -0]");
    expect(canonicalJson(numbers)).toBe("[333333333.3333333,1e+30,4.5,0.002,1e-27,0]");
    const member = memberNames({ unit: "grapheme", maxLength: 3 });
    const value = fc.letrec<{ json: Json }>((tie) => ({
      json: fc.oneof(
        { maxDepth: 3 },
        member,
        fc.double({ noNaN: true, noDefaultInfinity: true }),
        fc.dictionary(member, tie("json"), { noNullPrototype: true }),
      ),
    })).json;
    fc.assert(
      fc.property(value, (json) => {
        const text = canonicalJson(json);
        const read: Json = JSON.parse(text);
        expect(canonicalJson(read)).toBe(text);
        expect(canonicalJson(JSON.parse(JSON.stringify(reversed(json))))).toBe(text);
      }),
      { numRuns: 100 },
    );
  });

  test("HASH-1 PERSONA-1 name and description count, defaults that are written out do not", async () => {
    const persona: Persona = { identity: { systemPrompt: "Hi." } };
    const hash = async (one: Persona) => contentHash(completePersona(one));
    expect(await hash({ ...persona, description: "Says hello." })).not.toBe(await hash(persona));
    const written = { ...persona, memory: { recentTurnsLimit: 20 }, tools: { constraints: {} } };
    expect(await hash(written)).toBe(await hash(persona));
  });
});

describe("versions", () => {
  test("DEFS-1 DEFS-2 DEFS-3 are numbered in the order of their first contents, tenant by tenant", async () => {
    const write = fc.record({
      tenant: fc.constantFrom("one", "two"),
      id: fc.constantFrom("a", "b"),
      content: fc.integer({ min: 0, max: 4 }),
    });
    await fc.assert(
      fc.asyncProperty(fc.array(write, { maxLength: 25 }), async (writes) => {
        const database = new NodeSqlDatabase();
        const storeOf = (tenant: string) => new D1Definitions(nodeD1(database), tenant);
        const seen = new Map<string, number[]>();
        for (const { tenant, id, content } of writes) {
          const definition = { identity: { systemPrompt: `${content}` } };
          const hash = await contentHash(definition);
          const key = { library: "own", kind: "persona" as const, id };
          const author: Principal = { subject: tenant, tenant, roles: ["author"] };
          const added = await storeOf(tenant).add({ ...key, hash, definition }, author);
          const contents = seen.get(`${tenant} ${id}`) ?? [];
          expect(added.created).toBe(!contents.includes(content));
          if (added.created) contents.push(content);
          seen.set(`${tenant} ${id}`, contents);
          expect(added.version.version).toBe(contents.indexOf(content) + 1);
        }
        for (const [name, contents] of seen) {
          const [tenant = "", id = ""] = name.split(" ");
          const reference = { library: "own", id };
          const { items } = await storeOf(tenant).versions("persona", reference);
          expect(items.map(({ definition }) => Number(definition.identity.systemPrompt))).toEqual(contents);
          expect((await storeOf(tenant).find("persona", reference))?.version).toBe(contents.length);
        }
      }),
      { numRuns: 40 },
    );
  });

  test("DEFS-4 a hanging database is UNAVAILABLE; deployed definitions continue, and the next request asks again", async () => {
    const log = vi.spyOn(console, "error").mockReturnValue();
    const clock = new SteeredClock();
    const database = nodeD1(new NodeSqlDatabase());
    let hangs = true;
    const unanswered = { batch: () => new Promise(() => {}), prepare: () => ({ bind: () => ({}) }) };
    const stand = new Proxy(database, {
      get: (_, name) => Reflect.get(hangs ? unanswered : database, name),
    });
    const stores = {
      deployed: new D1Definitions(stand, CODE_TENANT, clock),
      authored: new D1Definitions(stand, "t", clock),
    };
    const library = defineLibrary("code", {
      personas: [definePersona("guide", { identity: { systemPrompt: "Hi." } })],
    });
    const code = new DeployedCode([library]);
    const registry = () => new Registry(code, stores);
    const late = async <Answer>(answer: Promise<Answer>) => {
      answer.catch(() => {});
      while (clock.pending === 0) await setImmediate();
      clock.fire(D1_TIMEOUT_MS);
      return answer;
    };
    await expect(late(stores.authored.library("own"))).rejects.toMatchObject({
      ...{ code: "UNAVAILABLE", retriable: true },
    });
    expect(await late(registry().persona({ library: "code", id: "guide" }))).toMatchObject({ version: 0 });
    hangs = false;
    expect(await registry().persona({ library: "code", id: "guide" })).toMatchObject({ version: 1 });
    expect(clock.pending).toBe(0);
    log.mockRestore();
  });
});

describe("effects", () => {
  const order: ToolEffect[] = ["pure", "idempotent", "once"];

  test("AUTHOR-2 REG-6 each effect allows the next effect's behaviour, but not the reverse", () => {
    for (const [i, one] of order.entries()) {
      for (const [j, other] of order.entries()) {
        expect(strictest(one, other) !== one).toBe(i < j);
        expect(strictest(one, other)).toBe(order[Math.max(i, j)]);
      }
    }
  });
});

describe("posted input schemas", () => {
  test("schemas from zod are accepted", () => {
    const nested: z.ZodType = z.lazy(() => z.object({ next: nested.optional() }));
    for (const input of [
      z.object({}),
      z.object({
        a: z.int().min(1).describe("A"),
        b: z
          .array(z.enum(["x", "y"]))
          .max(3)
          .optional(),
      }),
      z.object({ c: z.union([z.string().regex(/^a+$/), z.null()]), d: z.record(z.string(), z.number()) }),
      z.strictObject({ e: z.tuple([z.string(), z.boolean()]), f: z.iso.date(), g: z.literal([1, "2"]) }),
      z.object({ list: nested }),
    ]) {
      const schema = z.toJSONSchema(input, { io: "input" });
      // SAFETY: JSON Schema is JSON.
      expect(inputSchemaIssues(schema as unknown as JsonObject), JSON.stringify(schema)).toEqual([]);
    }
  });

  test("INSCHEMA-1 EFFORT-1 of any form is refused with places, or checks any input without an accident", () => {
    const keyword = fc.constantFrom(
      ...["type", "enum", "const", "required", "properties", "patternProperties", "items", "allOf", "anyOf"],
      ...[
        "not",
        "if",
        "then",
        "$ref",
        "$defs",
        "pattern",
        "minimum",
        "maxLength",
        "uniqueItems",
        "prefixItems",
      ],
      ...[
        "contains",
        "multipleOf",
        "format",
        "dependentRequired",
        "additionalProperties",
        "propertyNames",
        "title",
      ],
      ...["dependentSchemas", "dependencies", "additionalItems", "id", "$id", "nullable", "__proto__"],
    );
    const { schema } = fc.letrec<{ schema: Json; value: Json }>((tie) => ({
      schema: fc.oneof(
        { maxDepth: 4 },
        fc.boolean(),
        fc.dictionary(keyword, tie("value"), { maxKeys: 4 }),
      ) as fc.Arbitrary<Json>,
      value: fc.oneof(
        { maxDepth: 4 },
        tie("schema"),
        fc.constantFrom<Json>(
          "object",
          "string",
          "(",
          "^a",
          "#",
          "#/$defs/a",
          "#/properties/a",
          -1,
          2,
          true,
          null,
        ),
        fc.array(tie("schema"), { maxLength: 2 }),
        fc.array(fc.constantFrom("a", "b", "object"), { maxLength: 2 }),
        fc.dictionary(fc.constantFrom("a", "b", "^a", "("), tie("schema"), { maxKeys: 2 }),
      ) as fc.Arbitrary<Json>,
    }));
    const inputs: Json[] = [{}, { a: 1, b: "aa" }, { a: { a: [1, "a", null] }, b: [] }, { "^a": true }];
    let taken = 0;
    fc.assert(
      fc.property(schema, (one) => {
        const whole: JsonObject = {
          ...(typeof one === "object" && !Array.isArray(one) ? one : {}),
          type: "object",
        };
        const issues = inputSchemaIssues(whole, "/inputSchema");
        for (const { path, message } of issues) {
          expect(path).toMatch(/^\/inputSchema/);
          expect(message).not.toBe("");
        }
        if (issues.length > 0) return;
        taken += 1;
        for (const input of inputs) expect(violations(whole, input)).toEqual(expect.any(Array));
      }),
      { numRuns: 200 },
    );
    expect(taken).toBeGreaterThan(5);
  });
});

describe("fallback model profiles", () => {
  const profile = (fallbacks: string[]) => ({ provider: "offline" as const, modelId: "m", fallbacks });
  const registryOf = (graph: readonly string[][]) =>
    new Registry(
      new DeployedCode([
        defineLibrary("models", {
          modelProfiles: graph.map((fallbacks, n) => defineModelProfile(`p${n}`, profile(fallbacks))),
        }),
      ]),
    );
  const fallbacksOf = async (registry: Registry, modelProfileId: string) => {
    const persona = { identity: { systemPrompt: "Hi.", modelProfileId } };
    const chain = await resolveChain(registry, persona, { provider: "offline", modelId: "offline-1" });
    return (chain.fallbacks ?? []).map(({ id }) => id);
  };

  test("CHAIN-3 each is followed by its own fallbacks", async () => {
    const registry = registryOf([["p1", "p2"], ["p3", "p0"], ["p1"], []]);
    expect(await fallbacksOf(registry, "models/p0")).toEqual(["p1", "p3", "p2"]);
    expect(await fallbacksOf(registry, "models/p2")).toEqual(["p1", "p3", "p0"]);
    expect(await fallbacksOf(registry, "models/p3")).toEqual([]);
  });

  test("CHAIN-1 a profile is pinned with the deployment's additions, and so are its fallbacks", async () => {
    const registry = registryOf([["p1"], []]);
    const { modelProfile, fallbacks } = await resolveChain(
      registry,
      { identity: { systemPrompt: "Hi.", modelProfileId: "models/p0" } },
      { provider: "offline", modelId: "offline-1" },
      (found) => ({ ...found, baseUrl: "http://127.0.0.1:1" }),
    );
    const baseUrls = [modelProfile, ...(fallbacks ?? [])].map(({ definition }) => definition.baseUrl);
    expect(baseUrls).toEqual(["http://127.0.0.1:1", "http://127.0.0.1:1"]);
    const { hash } = await registry.modelProfile({ library: "models", id: "p0" });
    expect(modelProfile.hash).toBe(hash);
  });

  test("CHAIN-3 each profile appears once, without the first profile; more than five are refused", async () => {
    const graphs = fc.array(
      fc.array(fc.integer({ min: 0, max: 7 }), { maxLength: 3 }).map((ids) => ids.map((n) => `p${n}`)),
      { minLength: 8, maxLength: 8 },
    );
    await fc.assert(
      fc.asyncProperty(graphs, async (graph) => {
        const reachable = new Set(["p0"]);
        for (const id of reachable) for (const next of graph[Number(id.slice(1))] ?? []) reachable.add(next);
        reachable.delete("p0");
        const found = fallbacksOf(registryOf(graph), "models/p0");
        if (reachable.size > 5) await expect(found).rejects.toMatchObject({ code: "INVALID_INPUT" });
        else expect((await found).toSorted()).toEqual([...reachable].toSorted());
      }),
      { numRuns: 100 },
    );
  });

  test("an unknown profile is NOT_FOUND, by name, or stops the deployment if it is of the same library", async () => {
    const elsewhere = registryOf([["other/absent"]]);
    await expect(fallbacksOf(elsewhere, "models/p0")).rejects.toMatchObject({
      code: "NOT_FOUND",
      message: expect.stringContaining('"other"'),
    });
    expect(() => registryOf([["absent"]])).toThrow(/"p0".*model profile "absent".*It has: p0/);
  });
});

describe("deployed definitions", () => {
  test("a definition that is too large for the registry stops the deployment", () => {
    const instructions = Array.from({ length: 11 }, () => "é".repeat(25_000));
    const identity = { systemPrompt: "Hi.", instructions };
    expect(() => definePersona("large", { identity })).toThrow(/"large" has \d+ bytes.*524288/);
  });

  test("a tool by API runs its task, any other itself", async () => {
    const greet = defineTool({
      name: "greet",
      description: "Greets.",
      input: z.object({}),
      execute: () => null,
    });
    const tool = { library: "own", id: "hello", version: 3, hash: "", definition: greet.definition };
    const chain = await resolveChain(
      new Registry(new DeployedCode([])),
      { identity: { systemPrompt: "Hi." } },
      { provider: "offline", modelId: "offline-1" },
    );
    const call = { library: "own", id: "hello", version: 3 };
    const input = { name: "Ann" };
    expect(invocationOf({ ...chain, tools: [tool] }, { tool: call, input }).tool).toEqual(call);
    const posted = { ...tool, definition: { ...tool.definition, target: { task: "demo/greet" } } };
    const greeting = { library: "demo", id: "greet", version: 0 };
    expect(invocationOf({ ...chain, tools: [posted] }, { tool: call, input }).tool).toEqual(greeting);
    // INMAP-1: with a mapping the task gets the mapped members, without one the same input.
    expect(invocationOf({ ...chain, tools: [posted] }, { tool: call, input }).input).toBe(input);
    const mapped = { ...posted.definition, inputMapping: { who: "input.name" } };
    const tools = [{ ...posted, definition: mapped }];
    expect(invocationOf({ ...chain, tools }, { tool: call, input }).input).toEqual({ who: "Ann" });
  });
});
