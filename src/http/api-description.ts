/** `/openapi.json` and `/docs`: what the API says about itself, made at the first request that asks. */
import { z } from "zod";
import type { HttpRoutes } from "./base/context.ts";
import { html, json } from "./base/respond.ts";
import { type ApiDocument, apiDocument } from "./openapi/document.ts";
import type { ApiOperation } from "./openapi/operation.ts";
import { type DocsPage, docsPage } from "./openapi/page.ts";

export const descriptionOperations: readonly ApiOperation[] = [
  {
    id: "getDescription",
    method: "get",
    path: "/openapi.json",
    tag: "runtime",
    summary: "Read this description",
    answers: [{ status: 200, description: "An OpenAPI 3.1 document.", body: z.looseObject({}) }],
  },
  {
    id: "getDocs",
    method: "get",
    path: "/docs",
    tag: "runtime",
    summary: "Read this description as a page",
    answers: [{ status: 200, description: "A page without scripts.", type: "text/html", body: z.string() }],
  },
];

/** `operations` are those of the whole application. */
export function descriptionRoutes(app: HttpRoutes, operations: () => readonly ApiOperation[]): void {
  let document: ApiDocument | undefined;
  let page: DocsPage | undefined;
  const described = () => {
    document ??= apiDocument(operations());
    return document;
  };

  app.get("/openapi.json", () => json(described()));

  app.get("/docs", async () => {
    page ??= await docsPage(described());
    return html(page.text, page.styleHash);
  });
}
