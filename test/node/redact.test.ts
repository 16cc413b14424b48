/** Secrets in foreign text. */
import { describe, expect, test } from "vitest";
import { redactSecrets, withoutSecrets, withoutValues } from "../../src/shared/redact.ts";

const letters = (length: number) => "aB3".repeat(length).slice(0, length);

describe("E28 PROJ-3 keys of well-known services", () => {
  const keys: [service: string, key: string][] = [
    ["OpenAI", `sk-${letters(20)}`],
    ["Stripe", ["sk", "live", letters(24)].join("_")],
    ["Stripe's webhooks", `whsec_${letters(24)}`],
    ["GitHub", `ghp_${letters(36)}`],
    ["GitLab", `glpat-${letters(20)}`],
    ["AWS", `ASIA${"A1".repeat(8)}`],
    ["Slack", ["xapp", "1", letters(20)].join("-")],
    ["Google", `ya29.${letters(40)}`],
    ["Hugging Face", `hf_${letters(34)}`],
    ["npm", `npm_${letters(36)}`],
    ["xAI", `xai-${letters(40)}`],
    ["SendGrid", `SG.${letters(22)}.${letters(43)}`],
    ["JSON Web Token", `eyJ${letters(20)}.eyJ${letters(20)}.${letters(43)}`],
    ["Telegram", `123456789:AA${letters(33)}`],
  ];

  test.each(keys)("%s", (_service, key) => {
    expect(redactSecrets(`The key is ${key}.`)).not.toContain(key.slice(-12));
    expect(withoutSecrets({ list: [`a ${key} b`] })).toEqual({ list: ["a [redacted] b"] });
  });

  test("a password in an address, a webhook of Slack, and a private key", () => {
    expect(redactSecrets("postgres://app:hunter2@db.example/x")).toBe(
      "postgres://app:[redacted]@db.example/x",
    );
    expect(redactSecrets(`https://hooks.slack.com/services/T0/B0/${letters(24)}`)).toBe(
      "https://hooks.slack.com/services/[redacted]",
    );
    const pem = (end: string) => `-----BEGIN RSA PRIVATE KEY-----\n${letters(64)}\n${end}`;
    expect(redactSecrets(`${pem("-----END RSA PRIVATE KEY-----")} after`)).toBe("[redacted] after");
    expect(redactSecrets(pem(""))).toBe("[redacted]");
  });

  test("other text stays", () => {
    const text =
      "Basic rules: see https://example.com:8080/a@b, ask-anything-you-like-today, key_live, SG.x, 12:30, and eyJ.";
    expect(redactSecrets(text)).toBe(text);
    expect(withoutSecrets({ inputTokens: 5, sessionToken: "a" })).toEqual({
      inputTokens: 5,
      sessionToken: "[redacted]",
    });
  });

  test("long text without an end takes one pass", () => {
    for (const part of ["a://b:", "-----BEGIN ", "eyJaaaa.", "-eyJaaaaaaaa", "1".repeat(10), "SG"])
      expect(redactSecrets(part.repeat(100_000))).toBe(part.repeat(100_000));
  });
});

test("E28 REDACT-1 of secrets that contain each other nothing stays, and a very short value hides no text", () => {
  const result = { text: "key-12345 and key-1", "key-12345": ["a-b"], count: 12345, code: 98765 };
  expect(withoutValues(result, ["key-1", "key-12345", "a", "", "98765"])).toEqual({
    text: "[redacted] and [redacted]",
    "[redacted]": ["a-b"],
    count: 12345,
    code: "[redacted]",
  });
});

test("E28 REDACT-2 a secret stays in none of the forms that a server may send back", () => {
  const secret = 'pa"ss/wörd+1\\';
  const bytes = Buffer.from(secret);
  const basic = Buffer.from("shop-user:hunter-2").toString("base64");
  for (const [form, given] of [
    [JSON.stringify(secret).slice(1, -1), secret],
    [encodeURIComponent(secret), secret],
    [bytes.toString("base64"), secret],
    [bytes.toString("base64url"), secret],
    ["shop-user:hunter-2", basic],
    ["hunter-2", basic],
    ["hunter-2", `Basic ${basic}`],
  ] as const) {
    expect(redactSecrets(`It is ${form}.`, [given])).toMatch(/^It is \[redacted\]=*\.$/);
    expect(withoutValues([form], [given])).toEqual([expect.stringMatching(/^\[redacted\]=*$/)]);
  }
  for (const given of ["\ud800abc", "plain-key", "!!!!"])
    expect(redactSecrets(`a ${given} b`, [given])).toBe("a [redacted] b");
});
