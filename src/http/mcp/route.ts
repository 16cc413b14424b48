/** `/mcp`: the Model Context Protocol over streamable HTTP. The description of the API omits it, because the protocol describes itself. */
import { readJson } from "../base/body.ts";
import { type HttpRoutes, waitUntilOf } from "../base/context.ts";
import type { McpServing } from "./options.ts";

/** Adds the route. It must follow `authorize`. */
export function addMcp<Env>(app: HttpRoutes, serving: McpServing<Env>): void {
  app.all("/mcp", async (context) => {
    const { req, var: ports } = context;
    const { raw } = req;
    const body = raw.method === "POST" ? await readJson(raw, ports.maxBodyBytes) : undefined;
    const { answerMcp } = await import("./handler.ts");
    const request = {
      ...{ ports, headers: raw.headers, waitUntil: waitUntilOf(context) },
      // SAFETY: the caller of `fetch` passes an `Env`.
      pinTool: (reference: string) => serving.pinTool(context.env as Env, ports.principal.tenant, reference),
    };
    return answerMcp(raw, body, request, serving);
  });
}
