/** The API's description and its page are complete, valid, and true as far as a test without a server can check. */
import { Validator as SchemaValidator } from "@cfworker/json-schema";
import { Validator } from "@seriousme/openapi-schema-validator";
import { beforeAll, describe, expect, it } from "vitest";
import { exampleOf, type Schema } from "../../app/api-docs/example.ts";
import { docsPage } from "../../app/api-docs/page.ts";
import { headersFile } from "../../app/headers.ts";
import { createRoutes } from "../../src/http/app.ts";
import { type ApiDocument, apiDocument, errorStatus, pathTemplate } from "../../src/http/openapi/document.ts";
import { isList, TAGS } from "../../src/http/openapi/operation.ts";
import { OPERATIONS } from "../../src/http/operations.ts";

const document = apiDocument(OPERATIONS);

/** The document as it is served. */
const served = JSON.parse(JSON.stringify(document)) as ApiDocument;

/** Whether a value fits a schema of the document. */
function problemsOf(value: unknown, schema: Schema): unknown[] {
  const validator = new SchemaValidator({ ...schema, components: served.components }, "2020-12", false);
  return validator.validate(value).errors;
}

describe("the OpenAPI document", () => {
  it("is valid OpenAPI 3.1", async () => {
    const validator = new Validator();
    expect(await validator.validate({ ...served })).toEqual({ valid: true });
    expect(validator.version).toBe("3.1");
    expect(served.openapi).toBe("3.1.1");
  });

  it("API-2 describes exactly the routes", () => {
    const unused = () => {
      throw new Error("No request is made.");
    };
    const { routes } = createRoutes<object>({
      authorize: unused,
      requestPorts: unused,
      seed: unused,
    });
    // Other documents describe the metadata of OAuth.
    const ours = routes.filter(({ method, path }) => method !== "ALL" && !path.startsWith("/.well-known/"));
    const routed = new Set(ours.map(({ method, path }) => `${method} ${path}`));
    expect(routed.size).toBeGreaterThan(15);
    const described = OPERATIONS.map(({ method, path }) => `${method.toUpperCase()} ${path}`);
    expect(described.toSorted()).toEqual([...routed].toSorted());
    const documented = Object.entries(served.paths ?? {}).flatMap(([path, item]) =>
      Object.keys(item).map((method) => `${method} ${path}`),
    );
    expect(documented.toSorted()).toEqual(
      OPERATIONS.map(({ method, path }) => `${method} ${pathTemplate(path)}`).toSorted(),
    );
  });

  it("names every parameter of a path, every operation once, and only groups that there are", () => {
    for (const { id, path, params, tag } of OPERATIONS) {
      const names = [...path.matchAll(/:([A-Za-z]+)/g)].map(([, name]) => name);
      expect(Object.keys(params?.shape ?? {}), id).toEqual(names);
      expect(Object.keys(TAGS)).toContain(tag);
    }
    const ids = OPERATIONS.map(({ id }) => id);
    expect(new Set(ids).size).toBe(ids.length);
  });

  it("gives examples that fit their schemas", () => {
    const schemas = served.components?.schemas ?? {};
    expect(Object.keys(schemas).length).toBeGreaterThan(10);
    for (const [name, schema] of Object.entries(schemas)) {
      expect(problemsOf(exampleOf(schema, schemas), schema), name).toEqual([]);
    }
    for (const { id, body } of OPERATIONS) {
      if (body === undefined) continue;
      const example = body.meta()?.example;
      expect(example, id).toBeDefined();
      expect(body.safeParse(example), id).toMatchObject({ success: true });
    }
  });

  it("lists every error of a route that needs a principal", () => {
    for (const operation of OPERATIONS) {
      const { id, method, path, open, errorFormat, errors = [] } = operation;
      const responses = served.paths?.[pathTemplate(path)]?.[method]?.responses ?? {};
      const expected = new Set<string>(
        [
          ...errors,
          ...(isList(operation) ? (["UNKNOWN_PARAMETER"] as const) : []),
          ...(open === true
            ? (["UNAVAILABLE"] as const)
            : (["UNAUTHENTICATED", "RATE_LIMITED", "INTERNAL_ERROR", "UNAVAILABLE"] as const)),
        ].map((code) => `${errorStatus({ errorFormat }, code)}`),
      );
      const failures = Object.keys(responses).filter((status) => Number(status) >= 400);
      expect(failures.toSorted(), id).toEqual([...expected].toSorted());
    }
  });
});

describe("the docs page", () => {
  let text: string;
  let styleSource: string;

  beforeAll(async () => {
    ({ html: text, styleSource } = await docsPage(document));
  });

  it("DOCS-1 has no script, loads no file, and its policy allows only its style", async () => {
    expect(text).not.toMatch(
      /<script|<link|<img|<iframe|<form| on[a-z]+=| style=|url\(|@import|javascript:/i,
    );
    const style = /<style>([\s\S]*)<\/style>/.exec(text)?.[1] ?? "";
    const digest = await crypto.subtle.digest("SHA-256", new TextEncoder().encode(style));
    const hash = Buffer.from(digest).toString("base64");
    expect(styleSource).toBe(`'sha256-${hash}'`);
    const [, own] = headersFile(styleSource).split("/docs\n");
    expect(own?.split("\n")).toEqual([
      "  ! content-security-policy",
      `  content-security-policy: default-src 'none'; style-src 'sha256-${hash}'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'`,
      "",
    ]);
  });

  it("explains each parameter", () => {
    expect(text).toContain("In the query. Page size, from 1 to 200. Default: 50.");
    expect(text).not.toMatch(/In the query\.\s*</);
  });

  it("shows every operation, and every link leads somewhere", () => {
    for (const { id, summary } of OPERATIONS) {
      expect(text.includes(`<article id="${id}">`), id).toBe(true);
      expect(text.includes(summary.replaceAll("'", "&#39;")), summary).toBe(true);
    }
    const targets = [...text.matchAll(/href="#([^"]*)"/g)].map(([, target]) => target);
    expect(targets.length).toBeGreaterThan(40);
    const ids = [...text.matchAll(/ id="([^"]*)"/g)].map(([, id]) => id);
    expect(new Set(ids).size).toBe(ids.length);
    for (const target of targets) expect(ids).toContain(target);
  });

  it("DOCS-2 shows whatever a description says as text", async () => {
    const attack = `<script>alert("1")</script>\`<img src=x onerror='1'>\``;
    const [first] = OPERATIONS;
    if (first === undefined) throw new Error("There are no operations.");
    const hostile = apiDocument([{ ...first, summary: attack, description: attack }]);
    hostile.info = { title: attack, version: attack, description: attack };
    hostile.components = {
      schemas: {
        Hostile: { type: "object", description: attack, properties: { [attack]: { enum: [attack] } } },
      },
    };
    const page = (await docsPage(hostile)).html;
    expect(page).toContain("&lt;script&gt;alert(&quot;1&quot;)&lt;/script&gt;");
    expect(page).not.toContain("<script");
    expect(page).not.toContain("<img");
  });
});
