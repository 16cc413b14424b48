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
    Conversation: DurableObjectNamespace;
    Agent: DurableObjectNamespace;
    LimitedConversation: DurableObjectNamespace;
    FIVE_A_MINUTE: RateLimit;
    PortHost: DurableObjectNamespace<import("./worker.ts").PortHost>;
    Sleeper: DurableObjectNamespace<import("./worker.ts").Sleeper>;
    Courier: DurableObjectNamespace<import("./worker.ts").Courier>;
    Orders: DurableObjectNamespace<import("./worker.ts").Orders>;
    Stock: DurableObjectNamespace<import("./worker.ts").Stock>;
    DB: D1Database;
    PlainSessionAgent: DurableObjectNamespace<import("./worker.ts").PlainSessionAgent>;
    /** The scripted provider, for a model profile. */
    PROVIDER_URL: string;
    /** Where tests and tools reach the scripted provider's own side. */
    PROVIDER_CONTROL_URL: string;
  }
  interface GlobalProps {
    mainModule: typeof import("./worker.ts");
  }
}

/** A file as text. */
declare module "*?raw" {
  const text: string;
  export default text;
}
