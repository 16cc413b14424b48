/** The types of artifacts, their facts in the index, and the note for models. */
import fc from "fast-check";
import { describe, expect, test } from "vitest";
import { KNOWN_ARTIFACTS, knowledgeNote } from "../../src/artifacts/knowledge.ts";
import { ArtifactTypes } from "../../src/artifacts/types.ts";
import { estimateTokens } from "../../src/memory/session/tokens.ts";
import { type ArtifactType, MAX_ARTIFACT_BYTES, MAX_KNOWLEDGE_TOKENS } from "../../src/protocol/artifacts.ts";

const types = (...given: ArtifactType[]) => new ArtifactTypes(given, "words");
const VECTOR = "vector";
const bytes = (text: string) => new TextEncoder().encode(text);

describe("the types of artifacts", () => {
  test("ARTTYPE-1 the first matching pattern is the type of a path", () => {
    const all = types(
      { id: "decision", pathPattern: "decisions/*.json" },
      { id: "draft", pathPattern: "**/draft-*.md" },
      { id: "any", pathPattern: "docs/**" },
      { id: "notes", pathPattern: "notes/*.{md,txt}" },
    );
    const found = (path: string) => all.of(path)?.id;
    expect(found("decisions/jwt.json")).toBe("decision");
    expect(found("decisions/old/jwt.json")).toBeUndefined();
    expect(found("decisions/jwt.json.md")).toBeUndefined();
    expect(found("draft-a.md")).toBe("draft");
    expect(found("docs/x/draft-a.md")).toBe("draft");
    expect(found("docs/x/a")).toBe("any");
    expect(found("docs")).toBeUndefined();
    expect(found("notes/a.txt")).toBe("notes");
    expect(found("notes/a.json")).toBeUndefined();
  });

  test.each([
    [[{ id: "a b", pathPattern: "a" }], "/artifactTypes/0/id"],
    [[{ id: "a", pathPattern: "/a" }], "/artifactTypes/0/pathPattern"],
    [[{ id: "a", pathPattern: "a", schema: { type: "strin" } }], "/artifactTypes/0/schema/type"],
    [[{ id: "a", pathPattern: "a", embed: [] }], "/artifactTypes/0/embed"],
    [
      [
        { id: "a", pathPattern: "a" },
        { id: "a", pathPattern: "b" },
      ],
      "/artifactTypes",
    ],
  ])("refuses %j when the application starts", (given, path) => {
    // SAFETY: the test gives wrong types.
    expect(() => types(...(given as ArtifactType[]))).toThrow(`\`artifactTypes\` is not valid: ${path}: `);
  });

  test("the facts of a file name its title, its fields and its words", () => {
    const all = types({
      ...{ id: "decision", pathPattern: "decisions/*.json", schema: { type: "object", required: ["title"] } },
      index: { fields: ["status", "absent", "long"], embed: ["title"] },
    });
    const text = JSON.stringify({ title: "Use JWT", status: "taken", long: "x".repeat(500) });
    const facts = all.facts("decisions/jwt.json", "0", bytes(text), VECTOR);
    const vector = VECTOR;
    expect(facts).toMatchObject({ type: "decision", title: "Use JWT", bytes: text.length, vector });
    expect(facts.fields?.status).toBe("taken");
    expect(JSON.stringify(facts.fields?.long).length).toBeLessThan(250);
    expect(facts.words).toContain(" taken ");
    expect(all.embedText("decisions/jwt.json", text)).toBe("Use JWT");
    expect(all.facts("decisions/jwt.json", "0", bytes("{}"), VECTOR)).toMatchObject({
      type: null,
      vector: null,
    });
    expect(all.facts("a.md", "0", bytes("\n## Running tests\nMore"), VECTOR)).toMatchObject({
      ...{ type: null, title: "Running tests", fields: null },
      words: " a md run test more ",
    });
    const large = all.facts("a.md", "0", new Uint8Array(MAX_ARTIFACT_BYTES + 1).fill(97), VECTOR);
    expect(large).toMatchObject({ title: "", vector: null, words: " a md " });
  });
});

test("KNOWLEDGE-1 the note has a bounded size, whatever the artifacts are", () => {
  const text = fc.string({ unit: "grapheme", maxLength: 400 });
  const summary = fc.record({
    ...{ path: text, title: text, bytes: fc.nat(), updatedAt: fc.constant("2026-01-01T00:00:00.000Z") },
    fields: fc.dictionary(fc.string(), text),
  });
  fc.assert(
    fc.property(fc.array(summary, { maxLength: 120 }), (artifacts) => {
      const note = knowledgeNote(artifacts, "decision (decisions/*.json), ".repeat(100));
      expect(note === undefined).toBe(artifacts.length === 0);
      if (note === undefined) return;
      expect(estimateTokens(note)).toBeLessThanOrEqual(MAX_KNOWLEDGE_TOKENS);
      const lines = note.split("\n").slice(1);
      const shown = lines.filter((line) => line.startsWith("{"));
      expect(lines.length - shown.length).toBe(shown.length === artifacts.length ? 0 : 1);
      expect(shown.length).toBeLessThanOrEqual(KNOWN_ARTIFACTS);
    }),
  );
});
