/** Skills: the parser of `SKILL.md`, the checks of personas, and the reads of the model. */
import fc from "fast-check";
import { describe, expect, test } from "vitest";
import { defineLibrary, definePersona } from "../../src/library/define/define.ts";
import { defineAgent } from "../../src/library/define/define-agent.ts";
import { skillsOf } from "../../src/library/definitions/version-chain.ts";
import { DeployedCode } from "../../src/library/registry/deployed-code.ts";
import { Registry } from "../../src/library/registry/registry.ts";
import { resolveChain } from "../../src/library/registry/resolve.ts";
import {
  defineSkill,
  filesOfSkills,
  parseSkillFile,
  readSkill,
  skillsNote,
} from "../../src/library/skills/skill.ts";
import type { Persona } from "../../src/protocol/definitions.ts";

const OFFLINE = { provider: "offline", modelId: "offline-1" } as const;

const file = (yaml: string, body = "Do it.") => `---\n${yaml}\n---\n${body}`;
const skill = (name: string, files = {}) =>
  defineSkill({ files: { "SKILL.md": file(`name: ${name}\ndescription: Does ${name}.`), ...files } });

const refusal = (message: string) => expect.objectContaining({ message: expect.stringContaining(message) });

describe("SKILL.md", () => {
  test.each<[string, string, object]>([
    [
      "all fields",
      file(
        'name: pdf-forms\ndescription: Fills PDF forms. Use it for files with fields.\nlicense: Apache-2.0\ncompatibility: Needs bash and jq\nallowed-tools: Bash(jq:*) Read\nmetadata:\n  author: example\n  version: "1.0"',
        "\n# Forms\n\n---\n\nMore.\n",
      ),
      {
        ...{ name: "pdf-forms", description: "Fills PDF forms. Use it for files with fields." },
        ...{ license: "Apache-2.0", compatibility: "Needs bash and jq", "allowed-tools": "Bash(jq:*) Read" },
        metadata: { author: "example", version: "1.0" },
        body: "# Forms\n\n---\n\nMore.",
      },
    ],
    [
      "a folded description and a comment",
      file("# A skill\nname: release\ndescription: >-\n  Writes release notes:\n  short, and complete."),
      { name: "release", description: "Writes release notes: short, and complete.", body: "Do it." },
    ],
    [
      "quotation marks, a list, and values that look like numbers",
      file(
        "name: \"2048\"\ndescription: 'Plays: 2048'\nallowed-tools:\n  - Read\nmetadata: {version: 1.10, beta: true}",
      ),
      {
        ...{ name: "2048", description: "Plays: 2048", "allowed-tools": ["Read"], body: "Do it." },
        metadata: { version: "1.10", beta: "true" },
      },
    ],
    [
      "line ends of Windows, a mark of the byte order, and no body",
      "\uFEFF---\r\nname: a\r\ndescription: b\r\n---",
      { name: "a", description: "b", body: "" },
    ],
  ])("I14 SKILL-1 reads %s", (_, content, expected) => {
    expect(parseSkillFile(content)).toEqual(expected);
  });

  test.each<[string, string, string]>([
    ["no frontmatter", "# Title", 'must begin with a line "---"'],
    ["no end", "---\nname: a\ndescription: b\n", 'must begin with a line "---"'],
    ["no description", file("name: a"), "/description: Is required."],
    ["an empty description", file("name: a\ndescription:"), "/description: Must"],
    ["an unknown field", file("name: a\ndescription: b\ndescripton: c"), "description"],
    ["a long name", file(`name: ${"a".repeat(65)}\ndescription: b`), "/name"],
    ["two hyphens", file("name: a--b\ndescription: b"), "/name: Must have small letters"],
    ["a colon in a text", file("name: a\ndescription: Use when: needed"), "Line 3: "],
    ["a repeated field", file("name: a\nname: b\ndescription: c"), "Line 3: "],
    ["an alias", file("name: &a a\ndescription: *a"), "It has an alias"],
    ["a control character", file('name: a\ndescription: "b\\0"'), "/description: Must have no"],
    ["half a character", file('name: a\ndescription: "b\\uD800"'), "/description: Must have no"],
    [
      "another direction",
      file('name: a\ndescription: b\nmetadata: {a: "\\u202e"}'),
      "/metadata/a: Must have no",
    ],
    ["a list", file("- a"), "Must be an object"],
    ["a nested value", file("name: a\ndescription: b\nmetadata: {a: {b: c}}"), "/metadata/a: Must be a text"],
    ["too much YAML", file(`name: a\ndescription: b\nlicense: ${"c".repeat(4_096)}`), "4096 characters"],
    ["deep YAML", file(`name: a\ndescription: b\nmetadata: ${"[".repeat(4_000)}`), "Line 4: "],
  ])("I14 SKILL-2 refuses %s", (_, content, message) => {
    expect(() => parseSkillFile(content)).toThrow(
      expect.objectContaining({ code: "INVALID_INPUT", message: expect.stringContaining(message) }),
    );
  });

  test("I14 SKILL-1 any name, description and body come back as they were written", () => {
    const name = fc.stringMatching(/^[a-z0-9]{1,8}(-[a-z0-9]{1,8}){0,3}$/);
    const description = fc.string({ unit: "grapheme", minLength: 1, maxLength: 200 });
    fc.assert(
      fc.property(name, description, fc.string(), (given, about, body) => {
        fc.pre(about.trim() !== "" && !body.includes("\r"));
        const content = file(`name: "${given}"\ndescription: ${JSON.stringify(about)}`, body);
        expect(parseSkillFile(content)).toEqual({ name: given, description: about, body: body.trim() });
      }),
      { examples: [["a", "One line\u2028and another.", ""]] },
    );
  });

  test("I14 SKILL-2 any other text is refused with a typed error, or read", () => {
    fc.assert(
      fc.property(fc.string({ unit: "binary" }), (yaml) => {
        try {
          parseSkillFile(file(yaml));
        } catch (error) {
          expect(error).toMatchObject({ name: "DramatisError", code: "INVALID_INPUT" });
        }
      }),
    );
  });
});

describe("the skills of a persona", () => {
  const agent = (...skills: NonNullable<Persona["skills"]>) =>
    defineAgent({ id: "worker", instructions: "You work.", skills });

  test("I14 SKILL-3 have different names, and limits", () => {
    expect(agent(skill("a"), skill("b")).definition.skills).toHaveLength(2);
    expect(() => agent(skill("a"), skill("a"))).toThrow(refusal('Another skill is "a"'));
    expect(() => agent()).toThrow(refusal("at least 1"));
    const many = Array.from({ length: 21 }, (_, index) => skill(`s${index}`));
    expect(() => agent(...many)).toThrow(refusal("at most 20"));
    const large = skill("large", { "a.md": "a".repeat(256 * 1024) });
    expect(() => agent(large)).toThrow(refusal("The maximum is 262144"));
    expect(() => agent({ files: { "README.md": "" } })).toThrow(refusal("each skill has a file SKILL.md"));
    expect(() => agent(Object.assign(skill("b"), { file: {} }))).toThrow(refusal("/skills/0/file: Unknown"));
    expect(() => agent("lib/a@0")).toThrow(refusal('/skills/0: A reference is "library/id"'));
  });

  test.each(["../a", "/a", "a//b", "a/./b", "a\\b", "a\nb", "", "x/__proto__"])(
    "I14 SKILL-3 refuses the path %j",
    (path) => {
      expect(() => skill("a", { [path]: "" })).toThrow(refusal("/files/"));
    },
  );

  test("I14 SKILL-3 refuses a path that is a file and a folder", () => {
    expect(() => skill("a", { "b/c": "", b: "" })).toThrow(refusal("is a file and a folder"));
    expect(() => skill("a", { "b/c": "", "b-": "", "b/d": "" })).not.toThrow();
  });

  test("I14 SKILL-4 the note has one line for each skill, and `read_skill` finds only their files", () => {
    const skills = [
      defineSkill({ files: { "SKILL.md": file("name: a\ndescription: |\n  One.\n  Two."), "b.md": "B" } }),
    ];
    expect(skillsNote(skills, false)).toMatch(/\n- a: One\. Two\.$/);
    expect(skillsNote(skills, false)).not.toContain("Do it.");
    expect(readSkill(skills, { skill: "a" })).toEqual({ skill: "a", content: "Do it.", files: ["b.md"] });
    expect(readSkill(skills, { skill: "a", path: "b.md" })).toEqual({
      skill: "a",
      path: "b.md",
      content: "B",
    });
    for (const path of ["toString", "c.md"])
      expect(() => readSkill(skills, { skill: "a", path })).toThrow(
        expect.objectContaining({ code: "NOT_FOUND", message: expect.stringContaining("b.md") }),
      );
    expect(() => readSkill([], { skill: "a" })).toThrow(refusal("You have no skills"));
    expect(filesOfSkills(skills).map(([path]) => path)).toEqual(["a/SKILL.md", "a/b.md"]);
  });
});

describe("the skills of a library", () => {
  const persona = (...skills: NonNullable<Persona["skills"]>) =>
    definePersona("worker", { identity: { systemPrompt: "You work." }, skills });
  const chainOf = (...skills: NonNullable<Persona["skills"]>) => {
    const parts = ["a", "b", "c", "d"].map((name) => skill(name));
    const library = defineLibrary("lib", { skills: parts, personas: [persona(...skills)] });
    return resolveChain(new Registry(new DeployedCode([library])), "lib/worker", OFFLINE);
  };

  test("I14 SKILL-6 SKILL-7 have the names of their SKILL.md as ids, and a chain has their versions", async () => {
    const chain = await chainOf("a", "lib/c");
    expect(chain.skills).toEqual(
      ["a", "c"].map((id) => ({
        ...{ library: "lib", id, version: 1, hash: expect.stringMatching(/^[0-9a-f]{64}$/) },
        definition: skill(id),
      })),
    );
    expect(chain.tools.map(({ id }) => id)).toEqual(["read_skill"]);
  });

  test("I14 SKILL-7 any inline skills and references come back in their order", async () => {
    const names = fc.shuffledSubarray(["a", "b", "c", "d"], { minLength: 1 });
    await fc.assert(
      fc.asyncProperty(
        names,
        fc.array(fc.boolean(), { minLength: 4, maxLength: 4 }),
        async (given, inline) => {
          const chain = await chainOf(...given.map((name, index) => (inline[index] ? skill(name) : name)));
          expect(skillsOf(chain)).toEqual(given.map((name) => skill(name)));
        },
      ),
      { numRuns: 30 },
    );
  });

  test("I14 SKILL-7 a chain of an older release has the skills of its persona", async () => {
    const { skills: _, ...older } = await chainOf(skill("a"));
    expect(skillsOf(older)).toEqual([skill("a")]);
    const { skills: __, ...without } = older.persona.definition;
    expect(skillsOf({ ...older, persona: { ...older.persona, definition: without } })).toBeUndefined();
  });

  test("I14 SKILL-3 count among the skills of the persona", async () => {
    await expect(chainOf("a", skill("a"))).rejects.toThrow(refusal('/skills/1: Another skill is "a"'));
    const half = { "a.md": "a".repeat(150 * 1024) };
    const large = defineLibrary("large", { skills: [skill("one", half), skill("two", half)] });
    const registry = new Registry(new DeployedCode([large]));
    const { definition } = persona("large/one", "large/two");
    await expect(resolveChain(registry, definition, OFFLINE)).rejects.toThrow(
      refusal("The maximum is 262144"),
    );
  });

  test("LIBCHECK-1 SKILL-3 a missing skill, two skills with one name, and a large skill are refused when the library is defined", () => {
    const { files } = skill("a");
    expect(() => defineLibrary("lib", { skills: [skill("b")], personas: [persona("a")] })).toThrow(
      refusal('Persona "worker", /skills/0: library "lib" has no skill "a". It has: b.'),
    );
    expect(() => defineLibrary("lib", { skills: [{ files }, { files }] })).toThrow(
      refusal('two definitions of the skill "a"'),
    );
    const large = skill("large", { "a.md": "a".repeat(256 * 1024) });
    expect(() => defineLibrary("lib", { skills: [large] })).toThrow(refusal('skill "large": The skills'));
    expect(() => defineLibrary("lib", { skills: [{ files: {} }] })).toThrow(
      refusal("/skills/0/files/SKILL.md"),
    );
  });

  test("I14 SKILL-7 a missing skill of another library is not found, with its place", async () => {
    await expect(chainOf("a", "lib/a@7")).rejects.toMatchObject({
      code: "NOT_FOUND",
      message: expect.stringContaining('Persona "lib/worker", /skills/1: '),
    });
  });
});
