/**
 * `AIChatAgent` of `@cloudflare/ai-chat`, written as in its guide: `streamText` over all messages. The server drives it by
 * `saveMessages`, which resolves when the answer is stored.
 */
import { AIChatAgent } from "@cloudflare/ai-chat";
import { getAgentByName } from "agents";
import { convertToModelMessages, stepCountIs, streamText } from "ai";
import { countsOf, metered } from "../meter.ts";
import { aiSdkModel } from "../model.ts";
import type { System } from "../protocol.ts";
import { sdkSystem } from "./sdk-system.ts";
import { answerOf, seededMessages, tools, userMessage } from "./ui-messages.ts";

export class ChatAgent extends AIChatAgent<Cloudflare.Env> {
  constructor(ctx: DurableObjectState, env: Cloudflare.Env) {
    super(metered(ctx), env);
  }

  override async onChatMessage() {
    const result = streamText({
      model: aiSdkModel,
      messages: await convertToModelMessages(this.messages),
      tools,
      stopWhen: stepCountIs(5),
    });
    return result.toUIMessageStreamResponse();
  }

  async benchTurn(text: string) {
    const { status } = await this.saveMessages((messages) => [...messages, userMessage(text)]);
    if (status !== "completed") throw new Error(`The turn ended ${status}.`);
    return answerOf(this.messages);
  }

  async benchSeed(messages: number) {
    await this.persistMessages(seededMessages(messages));
    return this.messages.length;
  }

  async benchCounts() {
    return countsOf(this.ctx);
  }
}

export function aiChatAgent(namespace: DurableObjectNamespace<ChatAgent>): System {
  return sdkSystem((actor) => getAgentByName(namespace, actor));
}
