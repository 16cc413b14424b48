/**
 * The page `/docs`: the OpenAPI document as static HTML.
 *
 * DOCS-1  The page has no script and loads no other file. Its policy allows only its own style (`headers.ts`).
 * DOCS-2  All text of the document is escaped.
 */
import { createHash } from "node:crypto";
import { html, raw } from "hono/html";
import type { oas31 } from "zod-openapi";
import { PROBLEM_STATUS } from "../../src/http/base/problem.ts";
import { CODE_MEANINGS } from "../../src/http/openapi/codes.ts";
import type { ApiDocument } from "../../src/http/openapi/document.ts";
import { exampleOf, type Schema, type Schemas } from "./example.ts";
import { field, type Html, prose, schemaBlock } from "./schema-html.ts";
import { STYLE } from "./style.ts";

export interface DocsPage {
  html: string;
  /** The source of its style in a Content-Security-Policy. */
  styleSource: string;
}

const METHODS = ["get", "post", "put", "patch", "delete"] as const;

interface Entry {
  method: (typeof METHODS)[number];
  path: string;
  operation: oas31.OperationObject;
}

/** Renders the page. */
export async function docsPage(document: ApiDocument): Promise<DocsPage> {
  const hash = createHash("sha256").update(STYLE).digest("base64");
  return { html: String(await page(document)), styleSource: `'sha256-${hash}'` };
}

function page(document: ApiDocument): Html {
  const { info, tags = [], components } = document;
  const entries = entriesOf(document);
  const schemas = components?.schemas ?? {};
  const groups = tags.map((tag) => ({
    ...tag,
    entries: entries.filter(({ operation }) => operation.tags?.includes(tag.name)),
  }));
  return html`<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta name="color-scheme" content="light dark">
<title>${info.title} API</title>
<style>${raw(STYLE)}</style>
</head>
<body>
<nav aria-label="Contents">
<a class="home" href="#top">${info.title}</a>
${groups.map(
  ({ name, entries }) => html`<section><h2><a href="#${name}">${name}</a></h2>
<ul>${entries.map(
    ({ method, operation }) =>
      html`<li><a href="#${operation.operationId}"><span class="method ${method}">${method}</span>${operation.summary}</a></li>`,
  )}</ul></section>`,
)}
<section><h2><a href="#schemas">schemas</a></h2>
<ul>${Object.keys(schemas).map((name) => html`<li><a href="#schema-${name}">${name}</a></li>`)}</ul></section>
<section><h2><a href="#codes">errors</a></h2></section>
</nav>
<main id="top">
<header>
<h1>${info.title} API <small>${info.version}</small></h1>
${(info.description ?? "").split("\n\n").map((paragraph) => html`<p>${prose(paragraph)}</p>`)}
<p><a href="/openapi.json">openapi.json</a></p>
</header>
${groups.map(
  ({ name, description = "", entries }) => html`<section id="${name}" class="group">
<h2>${name}</h2><p>${prose(description)}</p>
${entries.map((entry) => operationArticle(entry, schemas))}
</section>`,
)}
<section id="schemas" class="group"><h2>schemas</h2>
${Object.entries(schemas).map(([name, schema]) => schemaArticle(name, schema, schemas))}
</section>
<section id="codes" class="group"><h2>errors</h2>
<p>Every error is a <a href="#schema-Problem">Problem</a> with one of these codes.</p>
<ul class="fields">${Object.entries(CODE_MEANINGS).map(
    ([
      code,
      meaning,
    ]) => html`<li><code class="name">${code}</code> <span class="type">${statusOf(code)}</span>
<div class="meaning">${prose(meaning)}</div></li>`,
  )}</ul>
</section>
</main>
</body>
</html>
`;
}

function operationArticle({ method, path, operation }: Entry, schemas: Schemas): Html {
  const { operationId, summary, description, parameters = [], requestBody, responses = {} } = operation;
  const body = requestBody !== undefined && "content" in requestBody ? requestBody.content : {};
  return html`<article id="${operationId}">
<h3>${summary}</h3>
<p class="route"><span class="method ${method}">${method}</span> <code>${path}</code></p>
${description === undefined ? "" : html`<p>${prose(description)}</p>`}
${parameters.length === 0 ? "" : html`<h4>Parameters</h4><ul class="fields">${parameters.map(parameterField)}</ul>`}
${contentBlocks("Body", body, schemas)}
<h4>Responses</h4>
${Object.entries(responses).map(([status, response]) => responseBlock(status, response, schemas))}
</article>`;
}

function parameterField(parameter: oas31.ParameterObject | oas31.ReferenceObject): Html | string {
  if (!("name" in parameter)) return "";
  const { name, schema = {}, required = false, description, in: place } = parameter;
  const meaning = description ?? ("description" in schema ? schema.description : undefined);
  const meanings = [place === "path" ? undefined : `In the ${place}.`, meaning].filter(
    (text) => text !== undefined,
  );
  return field(name, schema, required, meanings.join(" ") || undefined);
}

function responseBlock(
  status: string,
  response: oas31.ResponseObject | oas31.ReferenceObject,
  schemas: Schemas,
): Html | string {
  if (!("description" in response)) return "";
  const { description = "", content = {}, headers = {} } = response as oas31.ResponseObject;
  const isError = Number(status) >= 400;
  const names = Object.keys(headers);
  const line = html`<span class="status ${isError ? "error" : "success"}">${status}</span> ${prose(description)}
${names.length === 0 ? "" : html`<span class="limits">with ${names.join(", ")}</span>`}`;
  // All errors have the same body; the section on errors shows it once.
  if (isError || Object.keys(content).length === 0) return html`<p class="response">${line}</p>`;
  return html`<details><summary>${line}</summary>${contentBlocks("", content, schemas)}</details>`;
}

function contentBlocks(title: string, content: oas31.ContentObject, schemas: Schemas): Html | string {
  const blocks = Object.entries(content).map(([type, { schema = {} }]) => {
    const heading = title === "" ? html`<p class="limits">${type}</p>` : html`<h4>${title}</h4>`;
    return html`${heading}${schemaBlock(schema)}${type.endsWith("json") ? exampleBlock(schema, schemas) : ""}`;
  });
  return blocks.length === 0 ? "" : html`${blocks}`;
}

function schemaArticle(name: string, schema: Schema, schemas: Schemas): Html {
  const description = "description" in schema ? schema.description : undefined;
  return html`<article id="schema-${name}"><h3>${name}</h3>
${description === undefined ? "" : html`<p>${prose(description)}</p>`}
${schemaBlock(schema)}${exampleBlock(schema, schemas)}</article>`;
}

function exampleBlock(schema: Schema, schemas: Schemas): Html {
  const text = JSON.stringify(exampleOf(schema, schemas), null, 2);
  return html`<pre tabindex="0"><code>${text}</code></pre>`;
}

function entriesOf({ paths = {} }: ApiDocument): Entry[] {
  return Object.entries(paths).flatMap(([path, item]) =>
    METHODS.flatMap((method) => {
      const operation = item[method];
      return operation === undefined ? [] : [{ method, path, operation }];
    }),
  );
}

function statusOf(code: string): number {
  return Object.entries(PROBLEM_STATUS).find(([name]) => name === code)?.[1] ?? 500;
}
