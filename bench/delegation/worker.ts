/** The Worker of the systems that run on workerd, `POST /:system/:actor/:operation`. */
import { exports } from "cloudflare:workers";
import { operate, type System } from "./protocol.ts";
import { dramatisSystem } from "./systems/dramatis.ts";
import { think } from "./systems/think.ts";

export { Agent, Conversation, Executor } from "./systems/dramatis.ts";
export { ThinkClerk, ThinkManager } from "./systems/think.ts";

declare global {
  namespace Cloudflare {
    interface GlobalProps {
      mainModule: typeof import("./worker.ts");
      durableNamespaces: "Agent" | "Conversation" | "ThinkManager" | "ThinkClerk";
    }
  }
}

export default {
  async fetch(request: Request): Promise<Response> {
    const [, name, actor = "", operation] = new URL(request.url).pathname.split("/");
    const system = systemOf(name);
    const answer = system && (await operate(system, { actor, operation, body: await request.text() }));
    return answer === null
      ? new Response("There is no such operation.", { status: 404 })
      : new Response(answer);
  },
};

function systemOf(name: string | undefined): System | null {
  switch (name) {
    case "dramatis":
      return dramatisSystem();
    case "think":
      return think(exports.ThinkManager);
    default:
      return null;
  }
}
