/** `/openapi.json`: the description of the API. */
import { z } from "zod";
import { json } from "./base/respond.ts";
import { type ApiDocument, apiDocument } from "./openapi/document.ts";
import { type ApiOperation, ok } from "./openapi/operation.ts";
import { type Route, route } from "./openapi/route.ts";

/** `operations` returns all operations of the application. The first request for the document builds it. */
export function descriptionRoutes(operations: () => readonly ApiOperation[]): Route[] {
  let document: ApiDocument | undefined;
  return [
    route({
      id: "getDescription",
      method: "get",
      path: "/openapi.json",
      tag: "runtime",
      summary: "Read this description",
      answers: ok("An OpenAPI 3.1 document.", z.looseObject({})),
      handle: () => {
        document ??= apiDocument(operations());
        return json(document);
      },
    }),
  ];
}
