/**
 * Routes: operations with their handlers. A handler receives values that the schemas of its operation have checked.
 *
 * INPUTCHECK-1  The checks run in this order: path parameters (`NOT_FOUND`), permission (`FORBIDDEN`), query, headers and body
 *               (`INVALID_INPUT`). The errors of these checks are errors of each operation with such a schema.
 */
import type { Context } from "hono";
import type { z } from "zod";
import { validate } from "../../shared/validation.ts";
import { readBody, readOptionalBody } from "../base/body.ts";
import type { HttpEnv, HttpRoutes, RequestVariables } from "../base/context.ts";
import type { ProblemCode } from "../base/problem.ts";
import { pathParams } from "../base/query.ts";
import { type ApiOperation, BODY_ERRORS } from "./operation.ts";

type Answer = Response | Promise<Response>;

export interface Route extends ApiOperation {
  handle(context: Context<HttpEnv>): Answer;
}

type Output<Schema> = Schema extends z.ZodType ? z.output<Schema> : undefined;

/** An operation with the schemas of its requests, and the handler of their checked values. */
interface Handled<Params, Query, Headers, Body, Reads> extends ApiOperation {
  params?: Params & z.ZodObject;
  query?: Query & z.ZodObject;
  headers?: Headers & z.ZodObject;
  body?: Body & z.ZodType;
  reads?: Reads & z.ZodType;
  handle(
    input: {
      params: Output<Params>;
      query: Output<Query>;
      headers: Output<Headers>;
      body: Output<Reads extends z.ZodType ? Reads : Body>;
    },
    ports: RequestVariables,
    context: Context<HttpEnv>,
  ): Answer;
}

/** Returns the route of an operation. Its schemas check each request (INPUTCHECK-1). */
export function route<
  Params = undefined,
  Query = undefined,
  Headers = undefined,
  Body = undefined,
  Reads = undefined,
>(operation: Handled<Params, Query, Headers, Body, Reads>): Route {
  const { permit, params, query, headers, optionalBody, maxBytes } = operation;
  const body = operation.reads ?? operation.body;
  const read = async (context: Context<HttpEnv>): Promise<unknown> => {
    if (body === undefined) return undefined;
    return optionalBody === true ? readOptionalBody(context, body) : readBody(context, body, maxBytes);
  };
  return {
    ...operation,
    errors: errorsOf(operation),
    handle: async (context) => {
      const { req, var: ports } = context;
      const given = params && pathParams(params, req);
      permit?.(ports, req.param());
      const input = {
        params: given,
        query: query && validate(query, valuesOf(req.queries())),
        headers: headers && headersOf(headers, context),
        body: await read(context),
      };
      // SAFETY: the schemas of the operation have returned these values.
      return operation.handle(input as Parameters<typeof operation.handle>[0], ports, context);
    },
  };
}

function errorsOf({ params, query, headers, body, errors = [] }: ApiOperation): readonly ProblemCode[] {
  return [
    ...(body === undefined ? [] : BODY_ERRORS),
    ...errors,
    ...(params === undefined ? [] : (["NOT_FOUND"] as const)),
    ...((query ?? headers) === undefined ? [] : (["INVALID_INPUT"] as const)),
  ];
}

/** Returns the declared headers. Issues name them in lower case. */
function headersOf({ shape }: z.ZodObject, { req }: Context<HttpEnv>): Record<string, unknown> {
  const read = ([name, schema]: [string, z.ZodType]) =>
    [name, validate(schema, req.header(name), `/${name.toLowerCase()}`)] as const;
  return Object.fromEntries(Object.entries(shape).map(read));
}

export function addRoutes(app: HttpRoutes, routes: readonly Route[]): void {
  for (const { method, path, handle } of routes)
    app.on(method.toUpperCase(), path, (context) => handle(context));
}

/** Returns the parameters of a query. The value of a repeated parameter is a list. */
function valuesOf(queries: Record<string, string[]>): Record<string, string | string[]> {
  return Object.fromEntries(
    Object.entries(queries).map(([key, values]) => [key, values.length === 1 ? (values[0] ?? "") : values]),
  );
}
