/** The requests of `docs/departures.md`, in their order: each is sent as printed and answered as printed. */
import { describe, expect, test } from "vitest";
import page from "../../docs/departures.md?raw";
import type { Principal } from "../../src/shared/principal.ts";
import { call } from "./http-client.ts";

const LOCAL: Principal = { subject: "local", tenant: "departures", roles: ["admin"] };

/** The page's deployed tool, and the tool that the tests deploy. */
const examples = [
  ...page.replaceAll("demo/calculator", "test/double").matchAll(/^```http\n([\s\S]*?)^```$/gm),
]
  .map(([, text = ""]) => /^(\w+) (\S+)\n([\s\S]*)\n\n(\d+)\n([\s\S]*)$/.exec(text) ?? [text])
  .map(([text, method = "", path = "", body = "", status = "", answer = ""]) => ({
    title: `${method} ${path}: ${body.slice(0, 200)}`,
    text,
    method,
    path,
    body,
    status: Number(status),
    answer,
  }));

describe("A2 A6 B2 TOOLFORM-1 TOOLFORM-2 PARTY-1 PERSONAFORM-1 PERSONAFORM-2 the page on departures", () => {
  test("has requests", () => {
    expect(examples.length).toBeGreaterThan(10);
  });

  test.each(examples)("$title", async ({ method, path, body, status, answer }) => {
    const got = await call(method, path, JSON.parse(body), LOCAL);
    expect(got, JSON.stringify(got.body)).toMatchObject({ status, body: JSON.parse(answer) });
  });
});
