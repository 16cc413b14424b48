/** Questions of MCP servers to people, as pure functions. */
import { describe, expect, test } from "vitest";
import { z } from "zod";
import { elicitedBy, repeatedState } from "../../src/mcp/elicitation.ts";
import { type ElicitationView, isConfirmation } from "../../src/protocol/elicitation.ts";

const SECRET = "key-of-the-server-4711";

const form = (text: string) => ({
  method: "elicitation/create" as const,
  params: {
    message: `Say ${text}.`,
    requestedSchema: { type: "object" as const, properties: { a: { type: "string" as const, title: text } } },
  },
});
const address = (url: string) => ({
  method: "elicitation/create" as const,
  params: { mode: "url" as const, message: "Sign in.", url, elicitationId: "1" },
});
const asked = (inputRequests: Parameters<typeof elicitedBy>[1]["inputRequests"] & object) =>
  elicitedBy("desk", { inputRequests, requestState: "s" }, [SECRET]);

describe("a question", () => {
  test("ELICIT-3 shows no secret in its message, its schema, the texts of its forms and its host", () => {
    const one = asked({ first: form(SECRET), login: address(`https://${SECRET}.example.com/`) });
    expect(JSON.stringify(one)).not.toContain(SECRET);
    expect(one).toMatchObject({
      ...{ message: "Say [redacted].\n\nSign in.", forms: ["first"], urls: ["login"] },
      ...{ schema: { properties: { a: { title: "[redacted]" } } }, host: "[redacted].example.com" },
    });
    const two = asked({ first: form(SECRET), second: form("x") });
    expect(JSON.stringify(two)).not.toContain(SECRET);
    expect(two.schema).toMatchObject({ properties: { first: { description: "Say [redacted]." } } });
  });

  test("ELICIT-4 is refused if the name of a form among several is a secret", () => {
    expect(() => asked({ [SECRET]: form("x"), second: form("y") })).toThrow("names a question with a secret");
    expect(asked({ [SECRET]: form("x") }).forms, "a single form is not shown with its name").toEqual([
      SECRET,
    ]);
  });

  test.each(["javascript:alert(1)", "data:text/html,x", "http://login.example.com/", "ftp://example.com/"])(
    "ELICIT-4 is refused with the address %s",
    (url) => {
      expect(() => asked({ login: address(url) })).toThrow("with an address that is not https");
    },
  );

  test("ELICIT-4 may lead to https, and to plain http on a private host", () => {
    expect(asked({ login: address("https://login.example.com/") }).host).toBe("login.example.com");
    expect(asked({ login: address("http://localhost:8080/") }).host).toBe("localhost:8080");
  });

  test("ACP-14 CHANNEL-9 an approval alone answers a question without fields, conditions and address", () => {
    const ask: ElicitationView = { message: "Sure?", round: 1 };
    expect(isConfirmation(ask)).toBe(true);
    for (const schema of [{}, { type: "object", properties: {}, required: [] }, z.toJSONSchema(z.object({}))])
      expect(isConfirmation({ ...ask, schema }), JSON.stringify(schema)).toBe(true);
    expect(isConfirmation({ ...ask, host: "a.example" })).toBe(false);
    for (const schema of [
      { properties: { a: {} } },
      { properties: {}, required: ["a"] },
      { anyOf: [{ required: ["a"] }] },
      { $ref: "#/a" },
    ])
      expect(isConfirmation({ ...ask, schema }), JSON.stringify(schema)).toBe(false);
  });

  test("ELICIT-6 only an answer with a state and without questions repeats the call", () => {
    const resultType = "input_required";
    expect(repeatedState({ resultType, requestState: "s" })).toBe("s");
    expect(repeatedState({ resultType, requestState: "s", inputRequests: {} })).toBe("s");
    expect(repeatedState({ resultType, requestState: "s", inputRequests: { a: form("x") } })).toBeUndefined();
    expect(repeatedState({ requestState: "s", content: [] }), "a result").toBeUndefined();
    expect(() => asked({})).toThrow("has no question");
  });
});
