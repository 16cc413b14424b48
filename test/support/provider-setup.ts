/** Runs the scripted provider and MCP servers and A2A agents for the tests on workerd, which reach them over loopback. */
import type { TestProject } from "vitest/node";
import { startA2aServer } from "./a2a-server.ts";
import { startGitServer } from "./git-server.ts";
import { startMcpServers } from "./mcp-server.ts";
import { startScriptedProvider } from "./scripted-provider.ts";
import { startSlackServer } from "./slack-server.ts";
import { startWebhookServer } from "./webhook-server.ts";

export default async function setup(project: TestProject): Promise<() => Promise<void>> {
  const provider = await startScriptedProvider();
  project.provide("providerUrl", provider.baseUrl);
  project.provide("providerControlUrl", provider.controlUrl);
  const mcp = await startMcpServers();
  project.provide("mcpUrl", mcp.url);
  const a2a = await startA2aServer();
  project.provide("a2aUrl", a2a.url);
  const git = await startGitServer();
  project.provide("gitUrl", git.url);
  const slack = await startSlackServer();
  project.provide("slackUrl", slack.url);
  const webhooks = await startWebhookServer();
  project.provide("webhookUrl", webhooks.url);
  return async () => {
    await slack.close();
    await webhooks.close();
    await git.close();
    await provider.close();
    await mcp.close();
    await a2a.close();
  };
}

declare module "vitest" {
  interface ProvidedContext {
    providerUrl: string;
    providerControlUrl: string;
    mcpUrl: string;
    a2aUrl: string;
    gitUrl: string;
    slackUrl: string;
    webhookUrl: string;
  }
}
