/** Runs the scripted provider and MCP servers for the tests on workerd, which reach them over loopback. */
import type { TestProject } from "vitest/node";
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
  };
}

declare module "vitest" {
  interface ProvidedContext {
    providerUrl: string;
    providerControlUrl: string;
    mcpUrl: string;
    gitUrl: string;
    slackUrl: string;
    webhookUrl: string;
  }
}
