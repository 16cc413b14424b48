/** Models' answers to requests for data. */
import { describe, expect, test } from "vitest";
import { readAnswer } from "../../src/shared/json-schema/answer.ts";

const SCHEMA = {
  type: "object",
  properties: { name: { type: "string" } },
  required: ["name"],
  additionalProperties: false,
};
const read = (text: string) => readAnswer(SCHEMA, text);
const ADA = '{"name": "Ada {\\"}"}';

describe("ANSWERDATA-1 one object is accepted", () => {
  test.each([
    ["bare", ADA],
    ["in a fence", `\`\`\`json\n${ADA}\n\`\`\``],
    ["in a fence without a language", `\`\`\`\n${ADA}\n\`\`\``],
    ["in prose", `Sure! Here it is: ${ADA}. I hope that helps.`],
    ["behind braces and brackets of prose", `For {you} [1], as [you said]: ${ADA}`],
    ["twice the same", `${ADA}\nAgain: \`\`\`${ADA}\`\`\``],
    ["in brackets of prose", `[see ${ADA}]`],
  ])("%s", (_, text) => {
    expect(read(text)).toMatchObject({ value: { name: 'Ada {"}' } });
  });

  test("its text is the JSON alone, and a bare answer is unchanged", () => {
    expect(read(`Here: ${ADA}!`)).toMatchObject({ text: ADA });
    expect(read(` ${ADA}\n`)).toMatchObject({ text: ` ${ADA}\n` });
  });
});

describe("ANSWERDATA-2 anything else is refused", () => {
  test.each([
    ["nothing", " ", /empty/],
    ["prose", "I do not know.", /not JSON/],
    ["two objects", `${ADA} or {"name": "Eve"}`, /several different objects/],
    ["an object that is cut off", '```json\n{"name": "Ada", "friend": {"name": "Eve"}', /not complete/],
    ["a complete object before a truncated object", `${ADA} and {"name": "E`, /not complete/],
    ["an object within a broken one", 'So: {"a": 1, "b": {"name": "Ada"},}', /not JSON/],
    ["an object in a list", `Both: [${ADA}]`, /not JSON/],
    ["an object that does not fit", 'So: {"title": "Ada"}', /name/],
    ["another kind of value", "42", /object/],
  ])("%s", (_, text, problem) => {
    expect(read(text)).toEqual({ problem: expect.stringMatching(problem) });
  });
});

test("ANSWERDATA-3 a million brackets are refused, and an object after many short objects is found", () => {
  const problem = { problem: expect.stringMatching(/not JSON/) };
  expect(read(`"${"[".repeat(1_000_000)}`)).toEqual(problem);
  expect(read(`"${"[".repeat(500_000)}${"]".repeat(500_000)}`)).toEqual(problem);
  expect(read(`${"[1] ".repeat(20_000)}${ADA}`)).toMatchObject({ value: { name: 'Ada {"}' } });
});
