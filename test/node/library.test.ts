import fc from "fast-check";
import { describe, expect, test } from "vitest";
import { z } from "zod";
import {
  defineLibrary,
  defineModelProfile,
  definePersona,
  defineTool,
  type Library,
  type ToolOptions,
} from "../../src/library/define/define.ts";
import { contentHash } from "../../src/library/definitions/definition.ts";
import { formatReference, parseReference } from "../../src/library/definitions/reference.ts";
import { maxMovesPerTurn, recentTurnsLimit } from "../../src/library/personas/persona.ts";
import { DeployedCode } from "../../src/library/registry/deployed-code.ts";
import { Registry } from "../../src/library/registry/registry.ts";
import { parsePersonaSource, resolveChain } from "../../src/library/registry/resolve.ts";
import type { ModelProfile } from "../../src/model/profile.ts";
import type { Persona } from "../../src/protocol/definitions.ts";

const defaultProfile: ModelProfile = { provider: "offline", modelId: "offline" };

const greet = defineTool({
  name: "greet",
  description: "Greets somebody by name.",
  input: z.object({ name: z.string() }),
  execute: ({ name }) => `Hello, ${name}!`,
});

const full: Persona = {
  name: "Reviewer",
  description: "Reviews code.",
  identity: {
    systemPrompt: "You review code.",
    instructions: ["Be kind.", "Be exact."],
    modelProfileId: { library: "acme", id: "fast", version: 1 },
  },
  memory: { recentTurnsLimit: 5 },
  tools: { toolIds: ["greet", "acme/Greet_Politely@1"], constraints: { maxMovesPerTurn: 3 } },
};

const minimal: Persona = { identity: { systemPrompt: "You help." } };

function acme() {
  return defineLibrary("acme", {
    personas: [definePersona("reviewer", full), definePersona("helper", minimal)],
    tools: [greet, defineTool({ ...toolNamed("Greet_Politely"), effect: "pure", timeoutMs: 900_000 })],
    modelProfiles: [
      defineModelProfile("fast", { provider: "openai", modelId: "small", costPer1kInput: 0.1 }),
    ],
  });
}

function registryOf(...libraries: Library[]): Registry {
  return new Registry(new DeployedCode(libraries));
}

function toolNamed(name: string) {
  return { name, description: "A tool.", input: z.object({}), execute: () => null };
}

function invalid(message: RegExp) {
  return expect.objectContaining({ code: "INVALID_INPUT", message: expect.stringMatching(message) });
}

function absent(...words: string[]) {
  return expect.objectContaining({
    code: "NOT_FOUND",
    message: expect.stringMatching(new RegExp(words.join(".*"))),
  });
}

describe("defining a tool", () => {
  test("LIB-2 gives the model its name, its description and its input as JSON Schema", () => {
    const tool = defineTool({
      ...toolNamed("Search_Docs"),
      input: z.object({
        query: z.string().describe("What to look for"),
        limit: z.int().min(1).default(3),
        since: z.iso.date().optional(),
      }),
    });
    expect(tool.id).toBe("Search_Docs");
    expect(tool.definition).toEqual({
      name: "Search_Docs",
      description: "A tool.",
      effect: "once",
      timeoutMs: 60_000,
      inputSchema: {
        type: "object",
        properties: {
          query: { type: "string", description: "What to look for" },
          limit: { type: "integer", minimum: 1, default: 3 },
          since: { type: "string", format: "date" },
        },
        required: ["query"],
      },
    });
  });

  test.each([
    ["a name that providers refuse", { name: "search docs" }, /"search docs".*letters, digits/],
    ["a name too long", { name: "x".repeat(65) }, /1 to 64/],
    ["no description", { description: "" }, /\/description/],
    ["an id of other characters", { id: "search docs" }, /"search docs".*letters, digits, underscores/],
    ["a name that is no id", { name: "_" }, /id "_".*begins with a letter/],
    ["a timeout beyond 15 minutes", { timeoutMs: 900_001 }, /\/timeoutMs.*900000/],
    [
      "an input that is no object",
      { input: z.string() },
      /^Tool "tool" is not valid: \/input: .*Wrap it in z\.object/,
    ],
    ["an input that JSON does not have", { input: z.object({ at: z.date() }) }, /JSON Schema.*Date/],
    ["no name", { name: undefined }, /^The tool is not valid: \/name: Is required/],
    ["no input", { input: undefined }, /"tool".*\/input: Must be a schema of zod/],
    ["an input of fields alone", { input: { city: z.string() } }, /\/input: .*wrap the fields in z\.object/i],
    ["an input of JSON Schema", { input: { type: "object" } }, /\/input: Must be a schema of zod/],
    [
      "an input of an older zod",
      { input: { _def: {}, parse: () => 1 } },
      /\/input: Must be a schema of zod 4/,
    ],
    ["no code", { execute: undefined }, /"tool".*\/execute: Must be a function/],
    ["a field of another library", { parameters: {} }, /"tool".*\/parameters: Unknown field/],
  ])("refuses %s, and names the fix", (_, change, message) => {
    // SAFETY: what an author without types may write.
    const options = { ...toolNamed("tool"), ...change } as ToolOptions<z.ZodType>;
    expect(() => defineTool(options)).toThrow(invalid(message));
  });

  test("refuses no argument at all", () => {
    // SAFETY: as above.
    const define = defineTool as () => unknown;
    expect(() => define()).toThrow(invalid(/^The tool is not valid: Is required/));
  });
});

describe("defining a library", () => {
  test("A1 a persona's fields are returned unchanged", () => {
    expect(acme().personas.map(({ definition }) => definition)).toEqual([full, minimal]);
  });

  test.each([
    ["no prompt", { identity: { systemPrompt: "" } }, /"p".*\/identity\/systemPrompt/],
    ["a misspelt setting", { ...minimal, memory: { recentTurnLimit: 5 } }, /\/memory.*recentTurnLimit/],
    ["a limit of no turns", { ...minimal, memory: { recentTurnsLimit: 0 } }, /\/memory\/recentTurnsLimit/],
    [
      "an invalid reference",
      { ...minimal, tools: { toolIds: ["a/b/c"] } },
      /\/tools\/toolIds\/0.*library\/id/,
    ],
  ])("refuses a persona with %s", (_, persona, message) => {
    // SAFETY: what an author without types may write.
    expect(() => definePersona("p", persona as Persona)).toThrow(invalid(message));
  });

  test.each([
    ["cloudflare", "workers-ai"],
    ["google", "gemini"],
    ["local", "openai"],
    ["anthropic", "anthropic"],
  ])("the provider %s of a model profile is %s", (written, provider) => {
    // SAFETY: an alias is what the schema accepts beyond the type.
    const profile = { provider: written, modelId: "m", baseUrl: "http://127.0.0.1:1/v1/" } as ModelProfile;
    expect(defineModelProfile("fast", profile).definition).toEqual({
      provider,
      modelId: "m",
      baseUrl: "http://127.0.0.1:1/v1",
    });
  });

  test.each([
    ["an unknown provider", { provider: "acme" }, /\/provider/],
    ["a key in place of its name", { apiKeySecret: "sk-12345" }, /environment variable/],
    ["another protocol", { baseUrl: "ftp://host" }, /http/],
  ])("refuses a model profile with %s", (_, change, message) => {
    // SAFETY: what an author without types may write.
    const profile = { ...defaultProfile, ...change } as ModelProfile;
    expect(() => defineModelProfile("fast", profile)).toThrow(invalid(message));
  });

  test.each([
    ["no contents", undefined, /^Library "acme" is not valid: Is required/],
    ["a misspelt list", { persona: [] }, /"acme".*\/persona: Unknown field/],
    ["a tool in place of a list", { tools: greet }, /\/tools: Must be an array/],
    ["tools by name", { tools: { greet } }, /\/tools: Must be an array/],
    ["a persona as it is", { personas: [minimal] }, /\/personas\/0: Make it with definePersona/],
    ["a tool as it is", { tools: [greet, toolNamed("x")] }, /\/tools\/1: Make it with defineTool/],
    ["a profile as it is", { modelProfiles: [defaultProfile] }, /\/modelProfiles\/0: .*defineModelProfile/],
  ])("refuses a library with %s, and names the fix", (_, contents, message) => {
    // SAFETY: what an author without types may write.
    expect(() => defineLibrary("acme", contents as Parameters<typeof defineLibrary>[1])).toThrow(
      invalid(message),
    );
  });

  test.each([
    ["library", () => defineLibrary("my lib", {}), /^The id "my lib" of a library is not valid.*letters/],
    ["persona", () => definePersona("a b", minimal), /^The id "a b" of a persona is not valid.*letters/],
    ["model profile", () => defineModelProfile("", defaultProfile), /^The id "" of a model profile.*letters/],
    ["tool", () => defineTool(toolNamed("_a")), /^The id "_a" of a tool is not valid.*begins with a letter/],
    // SAFETY: the id is forgotten.
    ["persona without one", () => definePersona(minimal as never, minimal), /^The id of a persona is not/],
  ])("refuses a bad id of a %s by name", (_, define, message) => {
    expect(define).toThrow(invalid(message));
  });

  test("refuses a value that is not a list of libraries", () => {
    // SAFETY: what an author without types may write.
    expect(() => new DeployedCode(acme() as never)).toThrow(invalid(/libraries: \[library\]/));
    const module = { library: acme(), agents: [] };
    const listed = (item: unknown) => () => new DeployedCode([acme(), item as never]);
    expect(listed(module)).toThrow(
      invalid(/^`libraries\[1\]` is not a library\. Its member `library` is the library.*\[team\.library\]/),
    );
    for (const item of [undefined, null, "acme", {}])
      expect(listed(item)).toThrow(
        invalid(/^`libraries\[1\]` is not a library\. Make it with defineLibrary/),
      );
  });

  test("LIBCHECK-1 an error for a wrong reference names its place, its id, and the most similar ids first", () => {
    const names = [
      "refund",
      "cancel_order",
      "placeorder",
      "place_order",
      ...Array.from({ length: 30 }, (_, n) => `t${n}`),
    ];
    const tools = names.map((name) => defineTool(toolNamed(name)));
    const seller = definePersona("seller", { ...minimal, tools: { toolIds: ["refund", "Place_Ordr"] } });
    expect(() => defineLibrary("shop", { personas: [seller], tools })).toThrow(
      invalid(
        /^Persona "seller", \/tools\/toolIds\/1: library "shop" has no tool "Place_Ordr"\. It has: place_order, placeorder, cancel_order, .*, and more\.$/,
      ),
    );
    const spare = defineModelProfile("spare", defaultProfile);
    const fast = defineModelProfile("fast", { ...defaultProfile, fallbacks: ["spare", "spar"] });
    expect(() => defineLibrary("shop", { modelProfiles: [fast, spare] })).toThrow(
      invalid(/^Model profile "fast", \/fallbacks\/1: .*no model profile "spar"\. It has: spare, fast\.$/),
    );
  });

  test("LIBCHECK-1 a reference to another library is refused when it is resolved, with its place", async () => {
    const guide = definePersona("guide", { ...minimal, tools: { toolIds: ["acme/greet", "acme/greed"] } });
    const registry = registryOf(acme(), defineLibrary("my", { personas: [guide] }));
    await expect(resolveChain(registry, "my/guide", defaultProfile)).rejects.toThrow(
      'Persona "my/guide", /tools/toolIds/1: Library "acme" has no tool "greed". It has: greet, Greet_Politely.',
    );
    const fast = { identity: { systemPrompt: "x", modelProfileId: "acme/fats" } };
    await expect(resolveChain(registry, fast, defaultProfile)).rejects.toThrow(
      'Persona "inline", /identity/modelProfileId: Library "acme" has no model profile "fats". It has: fast.',
    );
    await expect(resolveChain(registry, "acme/helpr", defaultProfile)).rejects.toThrow(
      'Library "acme" has no persona "helpr". It has: helper, reviewer.',
    );
  });

  test("refuses two tools of one id", () => {
    expect(() => defineLibrary("acme", { tools: [greet, greet] })).toThrow(invalid(/"acme".*tool "greet"/));
  });

  test("refuses a persona with a tool or profile that is not in the library", () => {
    const missing = definePersona("p", { ...minimal, tools: { toolIds: ["acme/great"] } });
    expect(() => defineLibrary("acme", { personas: [missing], tools: [greet] })).toThrow(
      invalid(/"p".*tool "great".*It has: greet/),
    );
    const profile = definePersona("p", { identity: { systemPrompt: "x", modelProfileId: "fast" } });
    expect(() => defineLibrary("acme", { personas: [profile] })).toThrow(
      invalid(/model profile "fast".*none/),
    );
  });

  test("REG-1 refuses two libraries of one id", () => {
    expect(() => new DeployedCode([acme(), acme()])).toThrow(invalid(/"acme"/));
  });
});

describe("references", () => {
  const id = fc.stringMatching(/^[A-Za-z0-9][A-Za-z0-9_-]{0,63}$/);
  const reference = fc
    .record({ library: id, id, version: fc.option(fc.integer({ min: 1 }), { nil: undefined }) })
    .map(({ version, ...rest }) => (version === undefined ? rest : { ...rest, version }));

  test("REF-1 a printed reference parses to the same", () => {
    fc.assert(
      fc.property(reference, (one) => {
        expect(parseReference(formatReference(one))).toEqual(one);
        expect(parseReference(one)).toEqual(one);
      }),
    );
  });

  test("a bare id belongs to its own library", () => {
    expect(parseReference("greet@2", "acme")).toEqual({ library: "acme", id: "greet", version: 2 });
    expect(() => parseReference("greet")).toThrow(invalid(/library\/greet/));
  });

  test.each([
    "",
    "/",
    "a/",
    "/b",
    "a/b/c",
    "a/b@",
    "a/b@0",
    "a/b@1.5",
    "a/b@-1",
    "a/b@1@2",
    "_a/b",
    "a/-b",
    "a/ä",
    "a/b.c",
    "a b/c",
    "@1",
  ])("%j is no reference", (text) => {
    expect(() => parseReference(text, "acme")).toThrow(invalid(/reference/));
  });
});

describe("content hashes", () => {
  test("are the SHA-256 of the canonical JSON", async () => {
    // printf '{"identity":{"systemPrompt":"You help."}}' | sha256sum
    expect(await contentHash(minimal)).toBe(
      "a538a7c3e87493ebe62eefe543e8c686a7a8bc734e95eff4b8eb2c47c960ab98",
    );
  });

  test("do not depend on the order of keys, and change with the content", async () => {
    const reordered = Object.fromEntries(Object.entries(full).reverse());
    // SAFETY: the same members in another order.
    expect(await contentHash(reordered as unknown as Persona)).toBe(await contentHash(full));
    const changed = { ...full, identity: { ...full.identity, instructions: ["Be exact.", "Be kind."] } };
    expect(await contentHash(changed)).not.toBe(await contentHash(full));
  });
});

describe("the registry", () => {
  test("returns a definition with its library, id, version and hash", async () => {
    const registry = registryOf(acme());
    const { definition } = greet;
    const expected = {
      library: "acme",
      id: "greet",
      version: 1,
      hash: await contentHash(definition),
      definition,
    };
    expect(await registry.tool({ library: "acme", id: "greet" })).toEqual(expected);
    expect(await registry.tool({ library: "acme", id: "greet", version: 1 })).toEqual(expected);
    const code = new DeployedCode([acme()]);
    expect(code.toolCode("acme", "greet")).toBe(greet);
    expect(code.toolCode("acme", "great")).toBeUndefined();
  });

  test("A1 PERSONA-1 a persona that sets no limits has recentTurnsLimit 20 and maxMovesPerTurn 16", async () => {
    const registry = registryOf(acme());
    const { definition, hash } = await registry.persona({ library: "acme", id: "helper" });
    expect(definition).toEqual({
      ...minimal,
      memory: { recentTurnsLimit: 20 },
      tools: { constraints: { maxMovesPerTurn: 16 } },
    });
    expect(hash).toBe(await contentHash(definition));
    expect([recentTurnsLimit(minimal), maxMovesPerTurn(minimal)]).toEqual([20, 16]);
    expect((await registry.persona({ library: "acme", id: "reviewer" })).definition).toEqual(full);
    expect([recentTurnsLimit(full), maxMovesPerTurn(full)]).toEqual([5, 3]);
  });

  test("REG-2 changing a returned definition changes no stored definition", async () => {
    const registry = registryOf(acme());
    const first = await registry.persona({ library: "acme", id: "reviewer" });
    first.definition.identity.systemPrompt = "changed";
    expect((await registry.persona({ library: "acme", id: "reviewer" })).definition).toEqual(full);
  });

  test("a missing definition is NOT_FOUND, by name", async () => {
    const registry = registryOf(acme());
    await expect(registry.persona({ library: "none", id: "x" })).rejects.toEqual(absent('"none"', "acme"));
    await expect(registry.persona({ library: "acme", id: "x" })).rejects.toEqual(
      absent('persona "x"', "reviewer"),
    );
    await expect(registry.tool({ library: "acme", id: "greet", version: 2 })).rejects.toEqual(
      absent("acme/greet@2"),
    );
  });
});

describe("resolving a chain", () => {
  test("A2 CHAIN-1 a reference pins persona, tools and profile", async () => {
    const registry = registryOf(acme());
    const chain = await resolveChain(registry, "acme/reviewer", defaultProfile);
    expect(chain).toEqual({
      persona: await registry.persona({ library: "acme", id: "reviewer" }),
      tools: [
        await registry.tool({ library: "acme", id: "greet" }),
        await registry.tool({ library: "acme", id: "Greet_Politely" }),
      ],
      modelProfile: await registry.modelProfile({ library: "acme", id: "fast" }),
    });
    expect(structuredClone(chain)).toEqual(JSON.parse(JSON.stringify(chain)));
    expect(
      await resolveChain(registry, { library: "acme", id: "reviewer", version: 1 }, defaultProfile),
    ).toEqual(chain);
  });

  test("A2 an inline persona is pinned as itself, with the default profile", async () => {
    const registry = registryOf(acme());
    const { persona, tools, modelProfile } = await resolveChain(
      registry,
      { ...minimal, tools: { toolIds: ["acme/greet"] } },
      defaultProfile,
    );
    expect(persona).toMatchObject({ id: "inline", version: 1, definition: minimal });
    expect(persona).not.toHaveProperty("library");
    expect(persona.hash).toBe(await contentHash(persona.definition));
    expect(tools.map(({ id }) => id)).toEqual(["greet"]);
    expect(modelProfile).toEqual({
      id: "default",
      version: 1,
      hash: await contentHash(defaultProfile),
      definition: defaultProfile,
    });
  });

  test.each([
    [
      "an inline persona's tool without a library",
      { ...minimal, tools: { toolIds: ["greet"] } },
      /library\/greet/,
    ],
    [
      "a tool named twice",
      { ...minimal, tools: { toolIds: ["acme/greet", "acme/greet@1"] } },
      /same name "greet"/,
    ],
    ["an unknown field", { ...minimal, system: "x" }, /system/],
    ["an invalid persona", 7, /persona/i],
    ["an invalid reference", "acme", /names no library.*"library\/acme"/],
    ["a reference with more", { library: "acme", id: "reviewer", more: 1 }, /reference/],
  ])("refuses %s", async (_, source, message) => {
    const registry = registryOf(acme());
    // SAFETY: what arrives over a boundary has no type yet.
    await expect(resolveChain(registry, source as Persona, defaultProfile)).rejects.toEqual(invalid(message));
  });

  test("CHAIN-2 two tools of one name are refused", async () => {
    const other = defineLibrary("other", { tools: [defineTool({ ...toolNamed("greet"), id: "hello" })] });
    const registry = registryOf(acme(), other);
    const persona = { ...minimal, tools: { toolIds: ["acme/greet", "other/hello"] } };
    await expect(resolveChain(registry, persona, defaultProfile)).rejects.toEqual(
      invalid(/acme\/greet.*other\/hello.*"greet"/),
    );
  });

  test("a tool or profile that does not exist is NOT_FOUND", async () => {
    const registry = registryOf(acme());
    const tool = { ...minimal, tools: { toolIds: ["acme/gone"] } };
    await expect(resolveChain(registry, tool, defaultProfile)).rejects.toEqual(absent('tool "gone"'));
    const profile = { identity: { systemPrompt: "x", modelProfileId: "acme/gone" } };
    await expect(resolveChain(registry, profile, defaultProfile)).rejects.toEqual(
      absent('model profile "gone"'),
    );
  });

  test("parsePersonaSource names the field of an inline persona that is wrong", () => {
    expect(() => parsePersonaSource({ identity: {} })).toThrow(
      expect.objectContaining({
        options: { errors: [{ path: "/identity/systemPrompt", message: expect.any(String) }] },
      }),
    );
  });
});
