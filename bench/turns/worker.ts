/** The measured Worker: one entry point for all systems, `POST /:system/:actor/:operation`. */
import { exports } from "cloudflare:workers";
import { SYSTEMS, type System, type SystemName } from "./protocol.ts";
import { agent } from "./systems/agent.ts";
import { aiChatAgent } from "./systems/ai-chat-agent.ts";
import { dramatisSystem } from "./systems/dramatis.ts";
import { durableObject } from "./systems/durable-object.ts";
import { think } from "./systems/think.ts";

export { PlainAgent } from "./systems/agent.ts";
export { ChatAgent } from "./systems/ai-chat-agent.ts";
export { Agent, Conversation, Executor } from "./systems/dramatis.ts";
export { PlainObject, PlainTools, SafeObject } from "./systems/durable-object.ts";
export { ThinkAgent } from "./systems/think.ts";

declare global {
  namespace Cloudflare {
    interface GlobalProps {
      mainModule: typeof import("./worker.ts");
      durableNamespaces:
        | "Conversation"
        | "Agent"
        | "PlainObject"
        | "SafeObject"
        | "PlainAgent"
        | "ChatAgent"
        | "ThinkAgent";
    }
  }
}

export default {
  async fetch(request: Request): Promise<Response> {
    const { pathname, searchParams } = new URL(request.url);
    const [, name, actor, operation] = pathname.split("/");
    if (!isSystem(name) || actor === undefined) return new Response("No such system.", { status: 404 });
    const system = systemOf(name);
    const body = await request.text();
    switch (operation) {
      case "prepare":
        await system.prepare?.();
        return new Response("ready");
      case "turn":
        return new Response(await system.turn(actor, body, searchParams.has("first")));
      case "seed":
        return Response.json(await system.seed(actor, Number(body)));
      case "counts":
        return Response.json(await system.counts(actor));
      default:
        return new Response("No such operation.", { status: 404 });
    }
  },
};

function systemOf(name: SystemName): System {
  switch (name) {
    case "dramatis":
      return dramatisSystem();
    case "durable-object":
      return durableObject(exports.PlainObject);
    case "safe-object":
      return durableObject(exports.SafeObject);
    case "agent":
      return agent(exports.PlainAgent);
    case "ai-chat-agent":
      return aiChatAgent(exports.ChatAgent);
    case "think":
      return think(exports.ThinkAgent);
  }
}

function isSystem(name: string | undefined): name is SystemName {
  return SYSTEMS.some((system) => system === name);
}
