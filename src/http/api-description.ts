/** `/openapi.json`: the description of the API. */
import { z } from "zod";
import type { HttpRoutes } from "./base/context.ts";
import { json } from "./base/respond.ts";
import { type ApiDocument, apiDocument } from "./openapi/document.ts";
import { type ApiOperation, ok } from "./openapi/operation.ts";

export const descriptionOperations: readonly ApiOperation[] = [
  {
    id: "getDescription",
    method: "get",
    path: "/openapi.json",
    tag: "runtime",
    summary: "Read this description",
    answers: ok("An OpenAPI 3.1 document.", z.looseObject({})),
  },
];

/** `operations` are those of the whole application. The document is built by the first request for it. */
export function descriptionRoutes(app: HttpRoutes, operations: readonly ApiOperation[]): void {
  let document: ApiDocument | undefined;
  app.get("/openapi.json", () => {
    document ??= apiDocument(operations);
    return json(document);
  });
}
