/**
 * Builds the OpenAPI document from the descriptions of the operations. Pure.
 *
 * API-2  Every route is described, and every described operation has a route.
 * API-3  A body or a query is described by the schema that validates it.
 */
import { z } from "zod";
import {
  createDocument,
  type oas31,
  type ZodOpenApiObject,
  type ZodOpenApiOperationObject,
  type ZodOpenApiOverride,
  type ZodOpenApiResponsesObject,
} from "zod-openapi";
import { a2aStatus } from "../../compat/a2a/errors.ts";
import { openAiStatus } from "../../compat/openai/errors.ts";
import { frame } from "../../protocol/conversation-schemas.ts";
import { defined } from "../../shared/defined.ts";
import { VERSION } from "../../shared/version.ts";
import { PROBLEM_STATUS, type ProblemCode } from "../base/problem.ts";
import { CODE_MEANINGS } from "./codes.ts";
import { type ApiOperation, type ApiResponse, isList, TAGS } from "./operation.ts";
import { a2aErrorDocument, clientFrame, openAiErrorDocument, problemDocument } from "./views.ts";

export type ApiDocument = oas31.OpenAPIObject;

const DESCRIPTION = [
  "Every request except `GET /health` and results of deferred operations needs credentials that the application's `authorize` accepts, usually a bearer token. Resources of another tenant, and of conversations that the caller does not take part in, are 404.",
  "Times are ISO 8601 UTC. Lists ascend by creation and take `limit`, `cursor` and `order`. Unknown fields of a body are refused; lists and searches refuse unknown query parameters. Every error is a problem document (RFC 9457) with a stable `code`.",
].join("\n\n");

/** Errors of every operation. */
const COMMON_ERRORS: readonly ProblemCode[] = ["RATE_LIMITED", "INTERNAL_ERROR", "UNAVAILABLE"];

export function apiDocument(operations: readonly ApiOperation[]): ApiDocument {
  const paths: Record<string, Record<string, ZodOpenApiOperationObject>> = {};
  for (const operation of operations) {
    const path = pathTemplate(operation.path);
    paths[path] = { ...paths[path], [operation.method]: operationObject(operation) };
  }
  const description: ZodOpenApiObject = {
    openapi: "3.1.1",
    info: { title: "Dramatis", version: VERSION, description: DESCRIPTION },
    tags: Object.entries(TAGS).map(([name, description]) => ({ name, description })),
    security: [{ bearer: [] }],
    paths,
    components: {
      schemas: { Frame: frame, ClientFrame: clientFrame },
      securitySchemes: {
        bearer: {
          type: "http",
          scheme: "bearer",
          description: "A token that the application's `authorize` accepts.",
        },
      },
    },
  };
  const document = createDocument(description, { override: omitRefused });
  // SAFETY: the library's type covers all versions up to 3.2; this document has version 3.1.
  return document as ApiDocument;
}

/** Omits the fields that exist in a schema only to be refused with a message of their own. */
const omitRefused: ZodOpenApiOverride = ({ jsonSchema: { properties = {} } }) => {
  for (const [name, property] of Object.entries(properties))
    if (typeof property === "object" && "not" in property) delete properties[name];
};

/** Converts a route to an OpenAPI path: `/api/agents/:id` becomes `/api/agents/{id}`. */
export function pathTemplate(path: string): string {
  return path.replace(/:([A-Za-z]+)/g, "{$1}");
}

function operationObject(operation: ApiOperation): ZodOpenApiOperationObject {
  const { id, tag, summary, description, params, query, headers, body, optionalBody, open } = operation;
  return {
    operationId: id,
    tags: [tag],
    summary,
    requestParams: defined({ path: params, query, header: headers }),
    responses: { ...successes(operation.answers), ...failures(operation) },
    ...defined({
      description,
      security: open === true ? [] : undefined,
      requestBody:
        body === undefined
          ? undefined
          : { required: optionalBody !== true, content: { "application/json": { schema: body } } },
    }),
  };
}

function successes(answers: readonly ApiResponse[]): ZodOpenApiResponsesObject {
  const responses: ZodOpenApiResponsesObject = {};
  for (const { status, description, body, type = "application/json", stream, location } of answers) {
    const content: Record<string, { schema: z.ZodType }> = {};
    if (body !== undefined) content[type] = { schema: body };
    if (stream !== undefined) content["text/event-stream"] = { schema: stream };
    responses[`${status}`] = {
      description,
      ...defined({
        content: Object.keys(content).length === 0 ? undefined : content,
        headers: location === true ? header("Location", "Path of the created resource.") : undefined,
      }),
    };
  }
  return responses;
}

export function errorStatus(
  { errorFormat }: { errorFormat?: ApiOperation["errorFormat"] | undefined },
  code: ProblemCode,
) {
  const status = PROBLEM_STATUS[code];
  if (errorFormat === "a2a") return a2aStatus(status);
  return errorFormat === "openai" ? openAiStatus(status) : status;
}

function failures(operation: ApiOperation): ZodOpenApiResponsesObject {
  const { errors: own = [], open, errorFormat } = operation;
  const errors: readonly ProblemCode[] = isList(operation) ? [...own, "UNKNOWN_PARAMETER"] : own;
  const codes: ProblemCode[] =
    open === true ? [...errors, "UNAVAILABLE"] : ["UNAUTHENTICATED", ...errors, ...COMMON_ERRORS];
  const responses: ZodOpenApiResponsesObject = {};
  const isOpenAi = errorFormat === "openai";
  const document = isOpenAi ? openAiErrorDocument : errorFormat === "a2a" ? a2aErrorDocument : null;
  const statusOf = (code: ProblemCode) => errorStatus({ errorFormat }, code);
  for (const [status, group] of Map.groupBy(new Set(codes), statusOf)) {
    const name = (code: ProblemCode) => (isOpenAi ? code.toLowerCase() : code);
    responses[`${status}`] = {
      description: group.map((code) => `\`${name(code)}\`: ${CODE_MEANINGS[code]}`).join(" "),
      content:
        document === null
          ? { "application/problem+json": { schema: problemDocument } }
          : { "application/json": { schema: document } },
      ...defined({
        headers: status === 429 || status === 503 ? header("Retry-After", "Seconds to wait.") : undefined,
      }),
    };
  }
  return responses;
}

function header(name: string, description: string): z.ZodObject {
  return z.object({ [name]: z.string().describe(description) });
}
