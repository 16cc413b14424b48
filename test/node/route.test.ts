/** Routes: the checks of a request before its handler. */
import { Hono } from "hono";
import { expect, test } from "vitest";
import { z } from "zod";
import type { HttpEnv } from "../../src/http/base/context.ts";
import { problemOf } from "../../src/http/base/problem.ts";
import { addRoutes, type Route, route } from "../../src/http/openapi/route.ts";
import { DramatisError } from "../../src/shared/errors.ts";

const OPERATION = {
  id: "test",
  method: "post",
  path: "/things/:id",
  tag: "runtime",
  summary: "Test",
  params: z.object({ id: z.string().regex(/^[a-z]+$/) }),
  query: z.object({ size: z.coerce.number() }),
  headers: z.object({
    "If-Seq": z
      .string()
      .regex(/^[0-9]+$/)
      .transform(Number)
      .optional(),
  }),
  body: z.strictObject({ name: z.string() }),
  answers: [],
} as const;

function appWith(...routes: Route[]) {
  const app = new Hono<HttpEnv>();
  app.onError((error) => problemOf(error, "test"));
  app.use(async ({ set }, next) => {
    set("maxBodyBytes", 1_000);
    await next();
  });
  addRoutes(app, routes);
  return app;
}

test("INPUTCHECK-1 the path is checked first, then the permission, the query, the headers, and the body", async () => {
  let isAllowed = false;
  const permit = () => {
    if (!isAllowed) throw new DramatisError("FORBIDDEN", "Not allowed.");
  };
  const app = appWith(route({ ...OPERATION, permit, handle: (input) => Response.json(input) }));
  const send = async (path: string, body: string, headers = {}) => {
    const answer = await app.request(path, { method: "POST", body, headers });
    return [answer.status, await answer.json()];
  };
  expect(await send("/things/A?size=x", "{")).toMatchObject([404, { code: "NOT_FOUND" }]);
  expect(await send("/things/a?size=x", "{")).toMatchObject([403, { code: "FORBIDDEN" }]);
  isAllowed = true;
  expect(await send("/things/a?size=x", "{")).toMatchObject([422, { code: "INVALID_INPUT" }]);
  expect(await send("/things/a?size=2", "{")).toMatchObject([400, { code: "INVALID_JSON" }]);
  expect(await send("/things/a?size=2", "{", { "if-seq": "x" })).toMatchObject([
    422,
    { code: "INVALID_INPUT", errors: [{ path: "/if-seq" }] },
  ]);
  const input = { params: { id: "a" }, query: { size: 2 }, headers: {}, body: { name: "x" } };
  expect(await send("/things/a?size=2", '{"name":"x"}')).toEqual([200, input]);
  const withHeader = { ...input, headers: { "If-Seq": 7 } };
  expect(await send("/things/a?size=2", '{"name":"x"}', { "If-Seq": "7" })).toEqual([200, withHeader]);
});
