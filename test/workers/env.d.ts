/** Vite's, as far as tests use it. */
interface ImportMeta {
  glob<Module>(
    pattern: string,
    options: { query: string; import: string; eager: true },
  ): Record<string, Module>;
}

/** Bindings of `test/wrangler.jsonc` and `vitest.config.ts` that exist only in tests. */
declare namespace Cloudflare {
  interface Env {
    FIVE_A_MINUTE: RateLimit;
    DB: D1Database;
    BUCKET: R2Bucket;
    ASSETS: Fetcher;
    /** The scripted provider, for a model profile. */
    PROVIDER_URL: string;
    /** The address of the scripted provider's own side for tests and tools. */
    PROVIDER_CONTROL_URL: string;
    /** The address of the MCP servers. */
    MCP_URL: string;
    MCP_TOKEN: string;
    /** The address of the A2A agents. */
    A2A_URL: string;
    GIT_URL: string;
    SLACK_URL: string;
    /** The server that takes notices of webhooks. */
    WEBHOOK_URL: string;
  }
  interface GlobalProps {
    mainModule: typeof import("./worker.ts");
    durableNamespaces:
      | "Conversation"
      | "Agent"
      | "Channel"
      | "LimitedConversation"
      | "VectorAgent"
      | "MeteredConversation"
      | "MeteredAgent"
      | "PortHost"
      | "Sleeper"
      | "Courier"
      | "Orders"
      | "Stock"
      | "PlainSessionAgent";
  }
}

/** A file as text. */
declare module "*?raw" {
  const text: string;
  export default text;
}
