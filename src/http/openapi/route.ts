/**
 * Routes: operations with their handlers. A handler receives values that the schemas of its operation have checked.
 *
 * INPUTCHECK-1  The checks run in this order: path parameters (`NOT_FOUND`), permission (`FORBIDDEN`), query and body (`INVALID_INPUT`).
 */
import type { Context } from "hono";
import type { z } from "zod";
import { validate } from "../../shared/validation.ts";
import { readBody, readOptionalBody } from "../base/body.ts";
import type { HttpEnv, HttpRoutes } from "../base/context.ts";
import { pathParams } from "../base/query.ts";
import type { ApiOperation } from "./operation.ts";

type Answer = Response | Promise<Response>;

/** An operation with its handler. */
export interface Route extends ApiOperation {
  handle(context: Context<HttpEnv>): Answer;
}

type Output<Operation, Part extends string> = Operation extends { [Name in Part]: infer Schema }
  ? Schema extends z.ZodType
    ? z.output<Schema>
    : undefined
  : undefined;

/** The checked values of a request. */
interface Input<Operation> {
  params: Output<Operation, "params">;
  query: Output<Operation, "query">;
  body: Output<Operation, Operation extends { reads: z.ZodType } ? "reads" : "body">;
}

/** Returns the route of an operation. Its schemas check each request (INPUTCHECK-1). */
export function route<const Operation extends ApiOperation>(
  operation: Operation,
  handler: (input: Input<Operation>, ports: HttpEnv["Variables"], context: Context<HttpEnv>) => Answer,
): Route {
  const { permit, params, query, optionalBody, maxBytes } = operation;
  const body = operation.reads ?? operation.body;
  const read = async (context: Context<HttpEnv>): Promise<unknown> => {
    if (body === undefined) return undefined;
    return optionalBody === true ? readOptionalBody(context, body) : readBody(context, body, maxBytes);
  };
  return {
    ...operation,
    handle: async (context) => {
      const { req, var: ports } = context;
      const given = params && pathParams(params, req);
      permit?.(ports, req.param());
      const input = {
        params: given,
        query:
          query && validate(query, operation.repeats === true ? repeatedQuery(req.queries()) : req.query()),
        body: await read(context),
      };
      // SAFETY: the schemas of the operation have returned these values.
      return handler(input as Input<Operation>, ports, context);
    },
  };
}

/** Returns the route of an operation. The handler checks the request, for example an upgrade to a WebSocket. */
export function rawRoute(operation: ApiOperation, handle: Route["handle"]): Route {
  return { ...operation, handle };
}

export function addRoutes(app: HttpRoutes, routes: readonly Route[]): void {
  for (const { method, path, handle } of routes)
    app.on(method.toUpperCase(), path, (context) => handle(context));
}

/** Returns the parameters of a query. The value of a repeated parameter is a list. */
function repeatedQuery(queries: Record<string, string[]>): Record<string, string | string[]> {
  return Object.fromEntries(
    Object.entries(queries).map(([key, values]) => [key, values.length === 1 ? (values[0] ?? "") : values]),
  );
}
