/** An application behind a login of its own: a cookie names the user, and the login exchanges it for a token of a few seconds. */
import { SignJWT } from "jose";
import { dramatis } from "../../../src/dramatis.ts";
import { defineLibrary, definePersona } from "../../../src/library/define/define.ts";
import type { DramatisEnv } from "../../../src/options.ts";

const clerk = definePersona("clerk", { name: "Clerk", identity: { systemPrompt: "You are a clerk." } });

const app = dramatis({
  libraries: [defineLibrary("shop", { personas: [clerk] })],
  agents: [{ id: "clerk", persona: "shop/clerk" }],
  console: { signIn: { page: "/login", token: "/login/token", signOut: "/login/end" } },
});

/** The clocks of the server are half a minute lenient. */
const LIFE_S = 3;

export const { Conversation, Agent, Coordinator, Trigger, EventLog, Workspace, Executor } = app;

export default {
  async fetch(request: Request, env: DramatisEnv, context: ExecutionContext): Promise<Response> {
    const { pathname, searchParams } = new URL(request.url);
    const user = /\buser=(\w+)/.exec(request.headers.get("cookie") ?? "")?.[1];
    switch (pathname) {
      case "/login": {
        const to = searchParams.get("return") ?? "/";
        const cookie = "user=ada; Path=/; HttpOnly; SameSite=Lax";
        return new Response(null, { status: 303, headers: { location: to, "set-cookie": cookie } });
      }
      case "/login/token": {
        if (user === undefined) return new Response(null, { status: 401 });
        const token = await new SignJWT({ sub: user, tenant: "local" })
          .setProtectedHeader({ alg: "HS256" })
          .setExpirationTime(`${LIFE_S}s`)
          .sign(new TextEncoder().encode(env.AUTH_SECRET));
        return new Response(token);
      }
      case "/login/end": {
        const cookie = "user=; Path=/; Max-Age=0";
        return new Response("Goodbye.", { headers: { "set-cookie": cookie } });
      }
      default:
        return app.handler.fetch(request, env, context);
    }
  },
};
